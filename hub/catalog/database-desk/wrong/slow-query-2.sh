python3 - <<'END'
import sqlite3
sqlite3.connect("invoices.db").executescript("CREATE INDEX invoice_open ON invoice (customer_id, status, due);")
END
