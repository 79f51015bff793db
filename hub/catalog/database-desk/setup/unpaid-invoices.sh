#!/bin/sh
set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("billing.db")
db.executescript("""
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE invoice (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer(id), issued TEXT NOT NULL, void INTEGER NOT NULL DEFAULT 0);
CREATE TABLE line (id INTEGER PRIMARY KEY, invoice_id INTEGER NOT NULL REFERENCES invoice(id), quantity INTEGER NOT NULL, unit_cents INTEGER NOT NULL);
CREATE TABLE payment (id INTEGER PRIMARY KEY, invoice_id INTEGER NOT NULL REFERENCES invoice(id), cents INTEGER NOT NULL);
INSERT INTO customer VALUES (1,'Abel & Sons'),(2,'Birch, Inc.'),(3,'Cove'),(4,'Dune'),(5,'Elm');
INSERT INTO invoice VALUES (10,1,'2024-01-05',0),(11,1,'2024-02-05',0),(12,2,'2024-02-11',0),(13,3,'2024-02-12',0),(14,3,'2024-02-13',1),(15,4,'2024-03-01',0),(16,5,'2024-03-02',0);
INSERT INTO line (invoice_id,quantity,unit_cents) VALUES (10,2,1250),(10,1,999),(11,3,500),(12,1,20000),(12,4,25),(13,1,7000),(14,9,9000),(15,1,100),(15,2,50),(16,1,3000);
INSERT INTO payment (invoice_id,cents) VALUES (10,1000),(10,500),(11,1500),(12,10000),(12,5000),(12,100),(13,7000),(15,50),(16,3500);
""")
db.commit()
END
