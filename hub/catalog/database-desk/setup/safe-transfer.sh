#!/bin/sh
set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("bank.db")
db.executescript("""
CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, cents INTEGER NOT NULL, frozen INTEGER NOT NULL DEFAULT 0);
CREATE TABLE transfer (id INTEGER PRIMARY KEY, source INTEGER NOT NULL, target INTEGER NOT NULL, cents INTEGER NOT NULL);
CREATE TRIGGER no_frozen BEFORE INSERT ON transfer
WHEN EXISTS (SELECT 1 FROM account WHERE id IN (NEW.source, NEW.target) AND frozen)
BEGIN SELECT RAISE(ABORT, 'account is frozen'); END;
INSERT INTO account VALUES (1,'Ann',10000,0),(2,'Bo',500,0),(3,'Cy',7000,1);
""")
db.commit()
END
