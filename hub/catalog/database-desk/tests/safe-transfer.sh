#!/bin/bash
cd "$WORKDIR" || exit 1
fail() { echo "$1"; exit 1; }
as-agent python3 -I -c '
import sqlite3, sys
db = sqlite3.connect("file:bank.db?mode=rw", uri=True)
if db.execute("SELECT cents FROM account ORDER BY id").fetchall() != [(10000,), (500,), (7000,)] or db.execute("SELECT count(*) FROM transfer").fetchone() != (0,):
    sys.exit("bank.db itself was changed")
' || exit 1
as-agent python3 -I -c '
import sqlite3
db = sqlite3.connect("/tmp/t.db")
db.executescript("""
CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, cents INTEGER NOT NULL, frozen INTEGER NOT NULL DEFAULT 0);
CREATE TABLE transfer (id INTEGER PRIMARY KEY, source INTEGER NOT NULL, target INTEGER NOT NULL, cents INTEGER NOT NULL);
CREATE TRIGGER no_frozen BEFORE INSERT ON transfer WHEN EXISTS (SELECT 1 FROM account WHERE id IN (NEW.source, NEW.target) AND frozen)
BEGIN SELECT RAISE(ABORT, "account is frozen"); END;
INSERT INTO account VALUES (11,"A",1000,0),(12,"B",0,0),(13,"C",300,1),(14,"D",1000,0),(15,"E",0,0);
""")
'
state() { python3 -I -c '
import sqlite3
db = sqlite3.connect("file:/tmp/t.db?mode=ro", uri=True)
print(*[c for (c,) in db.execute("SELECT cents FROM account ORDER BY id")], "|", *[f"{s}>{t}:{c}" for s, t, c in db.execute("SELECT source, target, cents FROM transfer ORDER BY id")])'; }
try() {
  as-agent timeout 20 python3 transfer.py /tmp/t.db $2 > /tmp/said 2>&1; code=$?
  [ $code = "$1" ] || fail "transfer.py with $2 ended with code $code: $(tail -n 1 /tmp/said)"
  found=$(state); [ "$found" = "$3" ] || fail "after transfer.py with $2 there is: $found"
}
try 0 "11 12 400" "600 400 300 1000 0 | 11>12:400"
try 1 "11 12 601" "600 400 300 1000 0 | 11>12:400"
try 1 "11 13 50" "600 400 300 1000 0 | 11>12:400"
try 1 "13 11 50" "600 400 300 1000 0 | 11>12:400"
try 1 "11 99 50" "600 400 300 1000 0 | 11>12:400"
try 1 "99 11 50" "600 400 300 1000 0 | 11>12:400"
try 1 "11 12 0" "600 400 300 1000 0 | 11>12:400"
try 1 "11 12 -5" "600 400 300 1000 0 | 11>12:400"
try 1 "11 11 50" "600 400 300 1000 0 | 11>12:400"
try 0 "11 12 600" "0 1000 300 1000 0 | 11>12:400 11>12:600"
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do as-agent timeout 40 python3 transfer.py /tmp/t.db 14 15 100 > /dev/null 2>&1 & done; wait
found=$(state)
[ "${found%%|*}" = "0 1000 300 0 1000 " ] || fail "after twelve transfers of 100 at the same time from an account with 1000 there is: $found"
