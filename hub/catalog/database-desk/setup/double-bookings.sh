#!/bin/sh
set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("rooms.db")
db.executescript("""
CREATE TABLE booking (id INTEGER PRIMARY KEY, room TEXT NOT NULL, starts TEXT NOT NULL, ends TEXT NOT NULL, cancelled TEXT);
INSERT INTO booking VALUES
 (1,'Oak','2024-05-01 09:00','2024-05-01 10:00',NULL),(2,'Oak','2024-05-01 10:00','2024-05-01 11:00',NULL),(3,'Oak','2024-05-01 09:30','2024-05-01 10:30',NULL),
 (4,'Elm','2024-05-01 09:00','2024-05-01 12:00',NULL),(5,'Elm','2024-05-01 10:00','2024-05-01 10:30',NULL),(6,'Elm','2024-05-01 10:15','2024-05-01 10:20','2024-04-30'),
 (7,'Ash','2024-05-01 22:00','2024-05-02 02:00',NULL),(8,'Ash','2024-05-02 01:00','2024-05-02 03:00',NULL),(9,'Ash','2024-05-03 01:00','2024-05-03 03:00',NULL),
 (10,'Oak','2024-05-02 09:00','2024-05-02 10:00',NULL),(11,'Oak','2024-05-02 09:00','2024-05-02 10:00',NULL),(12,'Fir','2024-05-01 09:00','2024-05-01 18:00',NULL),(13,'Elm','2024-05-01 11:59','2024-05-01 12:30',NULL);
""")
db.commit()
END
