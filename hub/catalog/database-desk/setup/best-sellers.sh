#!/bin/sh
set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("shop.db")
db.executescript("""
CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT NOT NULL, category TEXT NOT NULL);
CREATE TABLE sale (product_id INTEGER NOT NULL REFERENCES product(id), quantity INTEGER NOT NULL, returned INTEGER NOT NULL DEFAULT 0);
INSERT INTO product VALUES (1,'lamp','light'),(2,'candle','light'),(3,'torch','light'),(4,'bulb','light'),(5,'desk','wood'),(6,'chair','wood'),(7,'tent','camp'),(8,'rope','camp'),(9,'mug','kitchen'),(10,'axe','wood');
INSERT INTO sale VALUES (1,5,0),(1,4,1),(2,7,0),(3,5,0),(4,2,0),(5,1,0),(6,1,0),(6,2,2),(7,12,3),(10,8,0),(10,1,1),(8,3,3);
""")
db.commit()
END
