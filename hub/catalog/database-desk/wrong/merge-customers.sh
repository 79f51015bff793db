python3 - <<'END'
import sqlite3
db = sqlite3.connect("crm.db")
db.executescript("""UPDATE customer SET email = lower(trim(email));
UPDATE orders SET customer_id = (SELECT MIN(c.id) FROM customer c WHERE c.email = (SELECT email FROM customer WHERE id = customer_id));
UPDATE OR IGNORE subscription SET customer_id = (SELECT MIN(c.id) FROM customer c WHERE c.email = (SELECT email FROM customer WHERE id = customer_id));
DELETE FROM customer WHERE id NOT IN (SELECT MIN(id) FROM customer GROUP BY email);
DELETE FROM subscription WHERE customer_id NOT IN (SELECT id FROM customer);
CREATE UNIQUE INDEX u ON customer (lower(trim(email)));""")
END
