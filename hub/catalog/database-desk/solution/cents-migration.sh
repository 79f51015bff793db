set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("ledger.db", isolation_level=None)
db.executescript("""
BEGIN;
DROP VIEW balance;
ALTER TABLE entry ADD COLUMN cents INTEGER NOT NULL DEFAULT 0;
UPDATE entry SET cents = CAST(round(amount * 100) AS INTEGER);
ALTER TABLE entry DROP COLUMN amount;
CREATE VIEW balance AS SELECT a.name, SUM(e.cents) AS cents FROM account a JOIN entry e ON e.account_id = a.id GROUP BY a.id;
COMMIT;
""")
END
