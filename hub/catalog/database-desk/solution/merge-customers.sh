set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("crm.db", isolation_level=None)
db.executescript("""
BEGIN;
CREATE TEMP TABLE keep AS SELECT id, MIN(id) OVER (PARTITION BY lower(trim(email))) AS main FROM customer;
UPDATE orders SET customer_id = (SELECT main FROM keep WHERE keep.id = customer_id);
INSERT OR IGNORE INTO subscription SELECT main, list FROM subscription JOIN keep ON keep.id = customer_id;
DELETE FROM subscription WHERE customer_id NOT IN (SELECT main FROM keep);
UPDATE customer SET
  phone = (SELECT c.phone FROM customer c JOIN keep k ON k.id = c.id WHERE k.main = customer.id AND c.phone IS NOT NULL ORDER BY c.id LIMIT 1),
  joined = (SELECT MIN(c.joined) FROM customer c JOIN keep k ON k.id = c.id WHERE k.main = customer.id)
WHERE id IN (SELECT main FROM keep);
DELETE FROM customer WHERE id NOT IN (SELECT main FROM keep);
UPDATE customer SET email = lower(trim(email));
CREATE UNIQUE INDEX customer_email ON customer (lower(trim(email)));
COMMIT;
""")
END
