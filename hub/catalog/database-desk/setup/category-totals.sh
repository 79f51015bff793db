#!/bin/sh
set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("catalogue.db")
db.executescript("""
CREATE TABLE category (id INTEGER PRIMARY KEY, name TEXT NOT NULL, parent_id INTEGER REFERENCES category(id));
CREATE TABLE product (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
CREATE TABLE placement (product_id INTEGER NOT NULL REFERENCES product(id), category_id INTEGER NOT NULL REFERENCES category(id), PRIMARY KEY (product_id, category_id));
INSERT INTO category VALUES (1,'Home',NULL),(2,'Kitchen',1),(3,'Knives',2),(4,'Pans',2),(5,'Garden',NULL),(6,'Tools',5),(7,'Knives',6),(8,'Bedroom',1),(9,'Empty',8);
INSERT INTO product VALUES (1,'Bread knife'),(2,'Pruning knife'),(3,'Wok'),(4,'Spade'),(5,'Pillow'),(6,'Multi tool'),(7,'Kitchen clock');
INSERT INTO placement VALUES (1,3),(2,7),(3,4),(4,6),(5,8),(6,7),(6,3),(6,2),(7,2),(7,1);
""")
db.commit()
END
