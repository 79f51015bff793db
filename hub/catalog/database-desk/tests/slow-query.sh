#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import sqlite3, sys
db = sqlite3.connect("file:invoices.db?mode=rw", uri=True)
rows = [(n, n * 7919 % 40, ("open", "paid", "paid", "void")[n * 31 % 4], f"2024-{n % 12 + 1:02}-{n % 28 + 1:02}", n * 37 % 5000) for n in range(1, 3001)]
if db.execute("SELECT id, customer_id, status, due, cents FROM invoice ORDER BY id").fetchall() != rows:
    sys.exit("the invoices were changed")
query = """SELECT id, due, cents FROM invoice WHERE customer_id = ? AND status = 'open' AND due < ? ORDER BY due DESC LIMIT 20"""
plan = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + query, (3, "2024-09-01"))]
if len(plan) != 1 or not plan[0].startswith("SEARCH"):
    sys.exit(f"the plan is {plan}")
used = plan[0].partition(" INDEX ")[2].partition(" ")[0]
(statement,) = db.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?", (used,)).fetchone() or ("",)
by_status = "status=?" in plan[0] or "status" in statement.upper().partition("WHERE")[2].lower()
if not ("customer_id=?" in plan[0] and "due<?" in plan[0] and by_status):
    sys.exit(f"the plan does not search by all conditions: {plan[0]}")
left = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'index'")} & {"invoice_customer", "invoice_number"}
if left:
    sys.exit(f"indexes that are of no use are left: {sorted(left)}")
if not db.execute("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = 'invoice_due'").fetchone():
    sys.exit("the index invoice_due is gone")
END
