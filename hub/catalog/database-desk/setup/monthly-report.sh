#!/bin/sh
set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("sales.db")
db.executescript("""
CREATE TABLE orders (id INTEGER PRIMARY KEY, placed TEXT NOT NULL, status TEXT NOT NULL);
CREATE TABLE item (order_id INTEGER NOT NULL REFERENCES orders(id), cents INTEGER NOT NULL);
""")
number = 0
for month, count in ((1, 4), (2, 1), (3, 3), (5, 2), (8, 5), (9, 1), (12, 2)):
    for day in range(1, count + 1):
        number += 1
        status = ("paid", "paid", "shipped", "cancelled")[number % 4] if month != 9 else "cancelled"
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", (number, f"2024-{month:02}-{day * 5:02} 1{day}:30:00", status))
        for n in range(number % 3 + 1):
            db.execute("INSERT INTO item VALUES (?, ?)", (number, 1000 + 37 * number + 5 * n))
db.execute("INSERT INTO orders VALUES (90, '2023-12-31 23:59:59', 'paid'), (91, '2025-01-01 00:00:00', 'paid'), (92, '2024-12-31 23:59:59', 'paid'), (93, '2024-06-15 08:00:00', 'paid')")
db.execute("INSERT INTO item VALUES (90, 500), (91, 600), (92, 700)")
db.commit()
END
