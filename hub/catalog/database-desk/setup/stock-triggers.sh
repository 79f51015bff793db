#!/bin/sh
set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("stock.db")
db.executescript("""
CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT NOT NULL, on_hand INTEGER NOT NULL DEFAULT 0);
CREATE TABLE movement (id INTEGER PRIMARY KEY, product_id INTEGER NOT NULL REFERENCES product(id), change INTEGER NOT NULL);
INSERT INTO product VALUES (1,'nail',90),(2,'screw',0),(3,'bolt',7),(4,'pin',5);
INSERT INTO movement VALUES (1,1,100),(2,1,-30),(3,2,12),(4,3,7);
""")
db.commit()
END
