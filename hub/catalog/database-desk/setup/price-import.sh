#!/bin/sh
set -eu
cat > prices.csv <<'END'
sku,name,price
A-1,Lamp,25.00
A-2,"Desk, oak",149.90
A-3,"Chair ""Nora""",75
A-5,Shelf,free
A-6,Stool,19.95
A-7,,5.00
A-8,Bench,-4.00
A-9,Rug,0.99
A-2b,Desk lamp,1.005
END
python3 - <<'END'
import sqlite3
db = sqlite3.connect("products.db")
db.executescript("""
CREATE TABLE product (id INTEGER PRIMARY KEY, sku TEXT NOT NULL UNIQUE, name TEXT NOT NULL, cents INTEGER NOT NULL, active INTEGER NOT NULL DEFAULT 1, created TEXT NOT NULL DEFAULT '2024-06-01');
CREATE TABLE review (id INTEGER PRIMARY KEY, product_id INTEGER NOT NULL REFERENCES product(id) ON DELETE CASCADE, stars INTEGER NOT NULL);
INSERT INTO product VALUES (1,'A-1','Lamp',2500,1,'2020-01-01'),(2,'A-2','Desk',13990,1,'2020-01-02'),(3,'A-4','Couch',90000,1,'2020-01-03'),(4,'A-5','Shelf',4000,1,'2020-01-04'),(5,'A-9','Rug',99,0,'2020-01-05'),(6,'A-0','Old one',100,0,'2019-01-01');
INSERT INTO review VALUES (1,1,5),(2,2,4),(3,5,3);
""")
db.commit()
END
