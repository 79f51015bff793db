python3 - <<'END'
import sqlite3
rows = sqlite3.connect("sales.db").execute("""SELECT substr(placed, 1, 7), COUNT(*), SUM(cents) FROM orders JOIN item ON order_id = id
WHERE status != 'cancelled' AND placed LIKE '2024%' GROUP BY 1 ORDER BY 1""")
open("report.csv", "w").write("month,orders,revenue\n" + "".join(f"{m},{n},{c / 100:.2f}\n" for m, n, c in rows))
END
