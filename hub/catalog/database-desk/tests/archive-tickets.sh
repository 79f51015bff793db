#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import sqlite3, sys
db = sqlite3.connect("file:tickets.db?mode=rw", uri=True)
def expect(table, *wanted):
    found = db.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()
    if found != list(wanted):
        sys.exit(f"{table} has: {found}")
expect("ticket", (2, "Cart", None, None), (4, "Mail", "2024-01-01", None), (5, "Search", "2023-12-31", None), (6, "Search speed", None, 5),
    (7, "Export", "2023-05-05", None), (8, "Export csv", "2023-05-06", 7), (9, "Export odt", "2024-02-02", 8), (11, "Old", None, None))
expect("comment", (3, 2, "c"), (5, 5, "e"), (6, 8, "f"), (8, 7, "h"), (9, 4, "i"))
expect("archived_ticket", (1, "Login", "2023-02-01", None), (3, "Cart icon", "2023-03-01", 2), (10, "Print", "2023-01-01", None), (100, "Ancient", "2020-01-01", None))
expect("archived_comment", (1, 1, "a"), (2, 1, "b"), (4, 3, "d"), (7, 10, "g"))
if db.execute("PRAGMA foreign_key_check").fetchall():
    sys.exit("rows refer to others that are gone")
END
