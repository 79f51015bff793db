python3 - <<'END'
import sqlite3
db = sqlite3.connect("ledger.db", isolation_level=None)
db.executescript("""DROP VIEW balance; CREATE TABLE e2 (id INTEGER PRIMARY KEY, account_id INTEGER NOT NULL REFERENCES account(id), cents INTEGER NOT NULL, note TEXT);
INSERT INTO e2 SELECT id, account_id, round(amount * 100), note FROM entry; DROP TABLE entry; ALTER TABLE e2 RENAME TO entry; CREATE INDEX entry_account ON entry (account_id);
CREATE VIEW balance AS SELECT a.name, SUM(e.cents) AS cents FROM account a JOIN entry e ON e.account_id = a.id GROUP BY a.id;""")
END
