python3 - <<'END'
import csv, sqlite3
rows = sqlite3.connect("billing.db").execute("""SELECT c.name, SUM(l.quantity * l.unit_cents) - COALESCE(SUM(p.cents), 0) AS cents FROM customer c JOIN invoice i ON i.customer_id = c.id
JOIN line l ON l.invoice_id = i.id LEFT JOIN payment p ON p.invoice_id = i.id WHERE NOT i.void GROUP BY c.id HAVING cents > 0 ORDER BY 2 DESC""").fetchall()
csv.writer(open("open.csv", "w", newline="")).writerows([("customer", "cents"), *rows])
END
