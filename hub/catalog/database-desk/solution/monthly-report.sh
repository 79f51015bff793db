set -eu
python3 - <<'END'
import sqlite3
rows = sqlite3.connect("sales.db").execute("""
WITH RECURSIVE months(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM months WHERE n < 12),
totals AS (SELECT o.id, substr(o.placed, 1, 7) AS month, COALESCE(SUM(i.cents), 0) AS cents
  FROM orders o LEFT JOIN item i ON i.order_id = o.id WHERE o.status != 'cancelled' GROUP BY o.id)
SELECT printf('2024-%02d', n) AS name, COUNT(t.id), COALESCE(SUM(t.cents), 0)
FROM months LEFT JOIN totals t ON t.month = printf('2024-%02d', n) GROUP BY n ORDER BY n""")
with open("report.csv", "w") as file:
    file.write("month,orders,revenue\n")
    file.writelines(f"{month},{orders},{cents // 100}.{cents % 100:02}\n" for month, orders, cents in rows)
END
