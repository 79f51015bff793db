#!/bin/sh
set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("tickets.db")
db.executescript("""
CREATE TABLE ticket (id INTEGER PRIMARY KEY, title TEXT NOT NULL, closed TEXT, parent_id INTEGER REFERENCES ticket(id));
CREATE TABLE comment (id INTEGER PRIMARY KEY, ticket_id INTEGER NOT NULL REFERENCES ticket(id), body TEXT NOT NULL);
CREATE TABLE archived_ticket (id INTEGER PRIMARY KEY, title TEXT NOT NULL, closed TEXT NOT NULL, parent_id INTEGER);
CREATE TABLE archived_comment (id INTEGER PRIMARY KEY, ticket_id INTEGER NOT NULL, body TEXT NOT NULL);
INSERT INTO ticket VALUES (1,'Login','2023-02-01',NULL),(2,'Cart',NULL,NULL),(3,'Cart icon','2023-03-01',2),(4,'Mail','2024-01-01',NULL),(5,'Search','2023-12-31',NULL),(6,'Search speed',NULL,5),(7,'Export','2023-05-05',NULL),(8,'Export csv','2023-05-06',7),(9,'Export odt','2024-02-02',8),(10,'Print','2023-01-01',NULL),(11,'Old',NULL,NULL);
INSERT INTO comment VALUES (1,1,'a'),(2,1,'b'),(3,2,'c'),(4,3,'d'),(5,5,'e'),(6,8,'f'),(7,10,'g'),(8,7,'h'),(9,4,'i');
INSERT INTO archived_ticket VALUES (100,'Ancient','2020-01-01',NULL);
""")
db.commit()
END
