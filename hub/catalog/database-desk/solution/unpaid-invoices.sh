set -eu
python3 - <<'END'
import csv, sqlite3
rows = sqlite3.connect("billing.db").execute("""
WITH owed AS (
  SELECT i.customer_id, (SELECT COALESCE(SUM(quantity * unit_cents), 0) FROM line WHERE invoice_id = i.id)
    - (SELECT COALESCE(SUM(cents), 0) FROM payment WHERE invoice_id = i.id) AS cents
  FROM invoice i WHERE NOT i.void)
SELECT c.name, SUM(o.cents) FROM owed o JOIN customer c ON c.id = o.customer_id
WHERE o.cents > 0 GROUP BY c.id ORDER BY 2 DESC, 1""").fetchall()
with open("open.csv", "w", newline="") as file:
    csv.writer(file, lineterminator="\n").writerows([("customer", "cents"), *rows])
END
