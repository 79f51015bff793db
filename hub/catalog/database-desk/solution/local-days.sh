set -eu
python3 - <<'END'
import sqlite3
rows = sqlite3.connect("visits.db").execute("""
SELECT date(at_utc, (SELECT minutes FROM zone_change WHERE from_utc <= at_utc ORDER BY from_utc DESC LIMIT 1) || ' minutes') AS day,
  COUNT(*), COUNT(DISTINCT visitor) FROM visit GROUP BY day ORDER BY day""")
open("days.txt", "w").writelines(" ".join(map(str, row)) + "\n" for row in rows)
END
