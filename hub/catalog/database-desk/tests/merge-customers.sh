#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import sqlite3, sys
db = sqlite3.connect("file:crm.db?mode=rw", uri=True)
def expect(what, query, wanted):
    found = db.execute(query).fetchall()
    if found != wanted:
        sys.exit(f"{what}: {found}")
expect("customers", "SELECT id, email, phone, joined FROM customer ORDER BY id", [
    (1, "ann@example.org", "555-1", "2022-03-04"), (2, "bob@example.org", "555-2", "2022-01-01"),
    (4, "cy@example.org", None, "2024-01-01"), (7, "ann@example.com", None, "2024-06-01")])
expect("orders", "SELECT id, customer_id, cents FROM orders ORDER BY id", [
    (1, 1, 100), (2, 1, 250), (3, 1, 50), (4, 2, 75), (5, 4, 10), (6, 1, 1), (7, 7, 2)])
expect("subscriptions", "SELECT customer_id, list FROM subscription ORDER BY 1, 2", [
    (1, "events"), (1, "news"), (1, "offers"), (2, "news"), (7, "news")])
for email in ("ann@example.org", "CY@example.org"):
    try:
        db.execute("INSERT INTO customer (email, joined) VALUES (?, '2025-01-01')", (email,))
    except sqlite3.IntegrityError:
        continue
    sys.exit(f"a second customer {email} can be inserted")
try:
    db.execute("INSERT INTO customer (email, joined) VALUES ('new@example.org', '2025-01-01')")
except sqlite3.Error as error:
    sys.exit(f"a new customer cannot be inserted: {error}")
END
