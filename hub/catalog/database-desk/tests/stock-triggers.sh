#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import sqlite3, sys
db = sqlite3.connect("file:stock.db?mode=rw", uri=True, isolation_level=None)
def stock(when, *wanted):
    found = tuple(n for (n,) in db.execute("SELECT on_hand FROM product ORDER BY id"))
    if found != wanted:
        sys.exit(f"{when}, on_hand is {found}")
def refused(statement, when, *wanted):
    try:
        db.execute(statement)
        sys.exit(f"{when} is not refused")
    except sqlite3.IntegrityError:
        stock(f"after {when} was refused", *wanted)
if db.execute("SELECT id, product_id, change FROM movement ORDER BY id").fetchall() != [(1, 1, 100), (2, 1, -30), (3, 2, 12), (4, 3, 7)]:
    sys.exit("the movements were changed")
stock("at the beginning", 70, 12, 7, 0)
db.execute("INSERT INTO movement VALUES (5, 2, 8), (6, 4, 3)")
stock("after two new movements", 70, 20, 7, 3)
db.execute("UPDATE movement SET change = -10 WHERE id = 2")
stock("after a change of a movement", 90, 20, 7, 3)
db.execute("UPDATE movement SET product_id = 4 WHERE id = 5")
stock("after a movement went to another product", 90, 12, 7, 11)
db.execute("UPDATE movement SET product_id = 3, change = 1 WHERE id = 5")
stock("after a movement changed in both", 90, 12, 8, 3)
db.execute("DELETE FROM movement WHERE id = 4")
stock("after a movement was deleted", 90, 12, 1, 3)
refused("INSERT INTO movement (product_id, change) VALUES (3, -2)", "a movement below zero", 90, 12, 1, 3)
refused("DELETE FROM movement WHERE id = 1", "a deletion that leads below zero", 90, 12, 1, 3)
refused("UPDATE movement SET change = -101 WHERE id = 2", "a change that leads below zero", 90, 12, 1, 3)
refused("UPDATE movement SET product_id = 2 WHERE id = 1", "a move that leads below zero", 90, 12, 1, 3)
db.execute("INSERT INTO movement (product_id, change) VALUES (3, -1)")
stock("after a movement to zero", 90, 12, 0, 3)
END
