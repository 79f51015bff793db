python3 - <<'END'
import sqlite3
db = sqlite3.connect("orders.db")
db.execute("UPDATE orders SET status = a.old FROM audit a WHERE a.order_id = orders.id AND a.at = '2024-04-02T09:30' AND a.actor = 'max' AND orders.status = 'cancelled'")
db.commit()
END
