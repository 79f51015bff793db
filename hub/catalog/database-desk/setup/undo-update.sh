#!/bin/sh
set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("orders.db")
db.executescript("""
CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT NOT NULL, address TEXT NOT NULL);
CREATE TABLE audit (id INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, order_id INTEGER NOT NULL, field TEXT NOT NULL, old TEXT, new TEXT);
CREATE TRIGGER track_status AFTER UPDATE OF status ON orders WHEN OLD.status IS NOT NEW.status
BEGIN INSERT INTO audit (at, actor, order_id, field, old, new) VALUES ('now', 'trigger', NEW.id, 'status', OLD.status, NEW.status); END;
""")
for n in range(1, 13):
    db.execute("INSERT INTO orders VALUES (?, ?, ?)", (n, ("open", "packed", "sent")[n % 3], f"{n} High Street"))
def change(at, actor, order, field, new):
    old = db.execute(f"SELECT {field} FROM orders WHERE id = ?", (order,)).fetchone()[0]
    db.execute(f"UPDATE orders SET {field} = ? WHERE id = ?", (new, order))
    db.execute("DELETE FROM audit WHERE actor = 'trigger'")
    db.execute("INSERT INTO audit (at, actor, order_id, field, old, new) VALUES (?, ?, ?, ?, ?, ?)", (at, actor, order, field, old, new))
change("2024-04-02T08:00", "eve", 2, "status", "packed")
change("2024-04-02T09:10", "max", 5, "address", "5 Mill Lane")
for n in range(1, 11):
    change("2024-04-02T09:30", "max", n, "status", "cancelled")
change("2024-04-02T09:31", "max", 7, "address", "7 Mill Lane")
change("2024-04-02T10:00", "eve", 3, "status", "sent")
change("2024-04-02T10:05", "eve", 11, "status", "cancelled")
change("2024-04-02T10:07", "eve", 4, "status", "open")
change("2024-04-02T10:09", "eve", 4, "status", "cancelled")
db.commit()
END
