set -eu
python3 - <<'END'
import sqlite3
check = "SELECT RAISE(ABORT, 'not enough in stock') WHERE EXISTS (SELECT 1 FROM product WHERE on_hand < 0);"
add = "UPDATE product SET on_hand = on_hand + NEW.change WHERE id = NEW.product_id;"
take = "UPDATE product SET on_hand = on_hand - OLD.change WHERE id = OLD.product_id;"
sqlite3.connect("stock.db").executescript(f"""
UPDATE product SET on_hand = (SELECT COALESCE(SUM(change), 0) FROM movement WHERE product_id = product.id);
CREATE TRIGGER movement_in AFTER INSERT ON movement BEGIN {add} {check} END;
CREATE TRIGGER movement_change AFTER UPDATE ON movement BEGIN {take} {add} {check} END;
CREATE TRIGGER movement_out AFTER DELETE ON movement BEGIN {take} {check} END;
""")
END
