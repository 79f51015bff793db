#!/bin/sh
set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("ledger.db")
db.executescript("""
CREATE TABLE account (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE entry (id INTEGER PRIMARY KEY AUTOINCREMENT, account_id INTEGER NOT NULL REFERENCES account(id), amount REAL NOT NULL, note TEXT);
CREATE INDEX entry_account ON entry (account_id);
CREATE VIEW balance AS SELECT a.name, SUM(e.amount) AS amount FROM account a JOIN entry e ON e.account_id = a.id GROUP BY a.id;
INSERT INTO account VALUES (1,'cash'),(2,'bank'),(3,'card');
INSERT INTO entry (account_id, amount, note) VALUES (1,19.99,'a'),(1,-0.57,NULL),(2,1.15,'b'),(2,1000000.29,'c'),(3,-4.35,''),(3,0,'zero'),(1,8.2,'it''s'),(2,-1.1,NULL),(3,99,'gone');
DELETE FROM entry WHERE note = 'gone';
""")
db.commit()
END
