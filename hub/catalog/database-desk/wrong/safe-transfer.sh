cat > transfer.py <<'END'
import sqlite3, sys
path, a, b, c = sys.argv[1], *map(int, sys.argv[2:])
db = sqlite3.connect(path, timeout=30, isolation_level=None)
rows = {i: x for i, x in db.execute("SELECT id, cents FROM account")}
if a == b or c <= 0 or a not in rows or b not in rows or rows[a] < c:
    sys.exit(1)
db.execute("UPDATE account SET cents = cents - ? WHERE id = ?", (c, a))
db.execute("UPDATE account SET cents = cents + ? WHERE id = ?", (c, b))
db.execute("INSERT INTO transfer (source, target, cents) VALUES (?, ?, ?)", (a, b, c))
END
