#!/bin/sh
set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("crm.db")
db.executescript("""
CREATE TABLE customer (id INTEGER PRIMARY KEY, email TEXT NOT NULL, phone TEXT, joined TEXT NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer(id), cents INTEGER NOT NULL);
CREATE TABLE subscription (customer_id INTEGER NOT NULL REFERENCES customer(id), list TEXT NOT NULL, PRIMARY KEY (customer_id, list));
INSERT INTO customer VALUES (1,'ann@example.org',NULL,'2023-05-01'),(2,'Bob@Example.org','555-2','2022-01-01'),(3,' ANN@example.org','555-1','2022-03-04'),
 (4,'cy@example.org',NULL,'2024-01-01'),(5,'bob@example.org ','555-9','2024-02-02'),(6,'ann@example.org','555-7','2024-05-05'),(7,'ann@example.com',NULL,'2024-06-01');
INSERT INTO orders VALUES (1,1,100),(2,3,250),(3,3,50),(4,5,75),(5,4,10),(6,6,1),(7,7,2);
INSERT INTO subscription VALUES (1,'news'),(3,'news'),(3,'offers'),(5,'news'),(6,'events'),(7,'news');
""")
db.commit()
END
