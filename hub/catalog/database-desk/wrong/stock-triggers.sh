python3 - <<'END'
import sqlite3
sqlite3.connect("stock.db").executescript("""UPDATE product SET on_hand = (SELECT COALESCE(SUM(change), 0) FROM movement WHERE product_id = product.id);
CREATE TRIGGER a AFTER INSERT ON movement BEGIN UPDATE product SET on_hand = on_hand + NEW.change WHERE id = NEW.product_id; SELECT RAISE(ABORT, 'x') WHERE EXISTS (SELECT 1 FROM product WHERE on_hand < 0); END;
CREATE TRIGGER b AFTER UPDATE ON movement BEGIN UPDATE product SET on_hand = on_hand + NEW.change - OLD.change WHERE id = NEW.product_id; SELECT RAISE(ABORT, 'x') WHERE EXISTS (SELECT 1 FROM product WHERE on_hand < 0); END;
CREATE TRIGGER c AFTER DELETE ON movement BEGIN UPDATE product SET on_hand = on_hand - OLD.change WHERE id = OLD.product_id; SELECT RAISE(ABORT, 'x') WHERE EXISTS (SELECT 1 FROM product WHERE on_hand < 0); END;""")
END
