set -eu
python3 - <<'END'
import sqlite3
sqlite3.connect("invoices.db").executescript("""
CREATE INDEX invoice_open ON invoice (customer_id, status, due);
DROP INDEX invoice_customer;
DROP INDEX invoice_number;
""")
END
