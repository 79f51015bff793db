#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import sqlite3, sys
db = sqlite3.connect("file:products.db?mode=rw", uri=True)
found = db.execute("SELECT sku, name, cents, active, created FROM product ORDER BY sku").fetchall()
wanted = [("A-0", "Old one", 100, 0, "2019-01-01"), ("A-1", "Lamp", 2500, 1, "2020-01-01"), ("A-2", "Desk, oak", 14990, 1, "2020-01-02"),
    ("A-3", 'Chair "Nora"', 7500, 1, "2024-06-01"), ("A-4", "Couch", 90000, 0, "2020-01-03"), ("A-5", "Shelf", 4000, 1, "2020-01-04"),
    ("A-6", "Stool", 1995, 1, "2024-06-01"), ("A-9", "Rug", 99, 1, "2020-01-05")]
for row in found:
    if row not in wanted:
        sys.exit(f"product has {row}")
if len(found) != len(wanted):
    sys.exit(f"product has {len(found)} rows")
if db.execute("SELECT id FROM product WHERE id <= 6 ORDER BY sku").fetchall() != [(6,), (1,), (2,), (3,), (4,), (5,)]:
    sys.exit("products have other ids than before")
if db.execute("SELECT id, product_id, stars FROM review").fetchall() != [(1, 1, 5), (2, 2, 4), (3, 5, 3)]:
    sys.exit("reviews were changed")
try:
    rejected = sorted(open("rejected.txt").read().split())
except OSError as error:
    sys.exit(f"rejected.txt cannot be read: {error}")
if rejected != ["A-2b", "A-5", "A-7", "A-8"]:
    sys.exit(f"rejected.txt has {rejected}")
END
