#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import sqlite3, sys
db = sqlite3.connect("file:ledger.db?mode=rw", uri=True)
def fail(text):
    sys.exit(text)
columns = {row[1]: (row[2].upper(), row[3]) for row in db.execute("PRAGMA table_info(entry)")}
if columns != {"id": ("INTEGER", columns.get("id", (0, 0))[1]), "account_id": ("INTEGER", 1), "cents": ("INTEGER", 1), "note": ("TEXT", 0)}:
    fail(f"entry has the columns {columns}")
found = db.execute("SELECT id, account_id, cents, typeof(cents), note FROM entry ORDER BY id").fetchall()
wanted = [(1, 1, 1999, "a"), (2, 1, -57, None), (3, 2, 115, "b"), (4, 2, 100000029, "c"), (5, 3, -435, ""), (6, 3, 0, "zero"), (7, 1, 820, "it's"), (8, 2, -110, None)]
if found != [(i, a, c, "integer", n) for i, a, c, n in wanted]:
    fail(f"entry has: {found}")
if db.execute("SELECT name, cents FROM balance ORDER BY name").fetchall() != [("bank", 100000034), ("card", -435), ("cash", 2762)]:
    fail("the view balance has other rows")
if [row[2:5] for row in db.execute("PRAGMA foreign_key_list(entry)")] not in ([("account", "account_id", "id")], [("account", "account_id", None)]):
    fail("entry has another foreign key than before")
indexes = db.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'entry' AND sql IS NOT NULL").fetchall()
if indexes != [("entry_account",)] or [r[2] for r in db.execute("PRAGMA index_info(entry_account)")] != ["account_id"]:
    fail("the index entry_account is missing")
if db.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchone() != (2,):
    fail("there are tables left over")
db.execute("INSERT INTO entry (account_id, cents) VALUES (1, 5)")
if db.execute("SELECT max(id) FROM entry").fetchone() != (10,):
    fail("the id of a deleted entry is used again")
db.execute("PRAGMA foreign_keys = ON")
END
