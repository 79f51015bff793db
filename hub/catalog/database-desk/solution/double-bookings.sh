set -eu
python3 - <<'END'
import sqlite3
rows = sqlite3.connect("rooms.db").execute("""
SELECT a.room, a.id, b.id, CAST(round((julianday(min(a.ends, b.ends)) - julianday(max(a.starts, b.starts))) * 1440) AS INTEGER)
FROM booking a JOIN booking b ON a.room = b.room AND a.id < b.id AND a.starts < b.ends AND b.starts < a.ends
WHERE a.cancelled IS NULL AND b.cancelled IS NULL ORDER BY 1, 2, 3""")
open("conflicts.csv", "w").writelines(",".join(map(str, row)) + "\n" for row in rows)
END
