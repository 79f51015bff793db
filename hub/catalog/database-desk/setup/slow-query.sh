#!/bin/sh
set -eu
cat > query.sql <<'END'
SELECT id, due, cents
FROM invoice
WHERE customer_id = ? AND status = 'open' AND due < ?
ORDER BY due DESC
LIMIT 20
END
python3 - <<'END'
import sqlite3
db = sqlite3.connect("invoices.db")
db.executescript("""
CREATE TABLE invoice (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL, status TEXT NOT NULL, due TEXT NOT NULL, cents INTEGER NOT NULL);
CREATE INDEX invoice_customer ON invoice (customer_id);
CREATE INDEX invoice_due ON invoice (due);
CREATE INDEX invoice_number ON invoice (id);
""")
db.executemany("INSERT INTO invoice VALUES (?, ?, ?, ?, ?)",
    ((n, n * 7919 % 40, ("open", "paid", "paid", "void")[n * 31 % 4], f"2024-{n % 12 + 1:02}-{n % 28 + 1:02}", n * 37 % 5000) for n in range(1, 3001)))
db.commit()
END
