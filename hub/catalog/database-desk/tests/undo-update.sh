#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import sqlite3, sys
db = sqlite3.connect("file:orders.db?mode=rw", uri=True)
status = {n: ("open", "packed", "sent")[n % 3] for n in range(1, 13)} | {2: "packed", 3: "sent", 4: "cancelled", 11: "cancelled"}
address = {n: f"{n} High Street" for n in range(1, 13)} | {5: "5 Mill Lane", 7: "7 Mill Lane"}
for number, found, place in db.execute("SELECT id, status, address FROM orders ORDER BY id").fetchall():
    if (found, place) != (status.pop(number, None), address[number]):
        sys.exit(f"order {number} has the status {found} and the address {place}")
if status:
    sys.exit(f"the orders {sorted(status)} are gone")
if db.execute("SELECT count(*) FROM audit WHERE actor != 'trigger'").fetchone() != (17,):
    sys.exit("the log was changed")
new = db.execute("SELECT order_id, old FROM audit WHERE actor = 'trigger' ORDER BY order_id").fetchall()
if new != [(n, "cancelled") for n in (1, 2, 5, 6, 7, 8, 9, 10)]:
    sys.exit(f"the trigger recorded: {new}")
END
