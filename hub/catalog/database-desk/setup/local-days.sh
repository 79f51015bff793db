#!/bin/sh
set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("visits.db")
db.executescript("""
CREATE TABLE visit (id INTEGER PRIMARY KEY, at_utc TEXT NOT NULL, visitor TEXT NOT NULL);
CREATE TABLE zone_change (from_utc TEXT PRIMARY KEY, minutes INTEGER NOT NULL);
INSERT INTO zone_change VALUES ('2023-10-29T01:00:00Z', 60), ('2024-03-31T01:00:00Z', 120), ('2024-10-27T01:00:00Z', 60);
INSERT INTO visit (at_utc, visitor) VALUES
 ('2024-03-30T22:59:59Z','a'),('2024-03-30T23:00:00Z','a'),('2024-03-31T00:59:59Z','b'),('2024-03-31T21:59:59Z','a'),('2024-03-31T22:00:00Z','a'),('2024-03-31T22:30:00Z','c'),
 ('2024-04-01T21:00:00Z','c'),('2024-10-26T21:30:00Z','d'),('2024-10-26T22:30:00Z','d'),('2024-10-27T22:30:00Z','d'),('2024-10-27T23:00:00Z','e'),('2024-10-27T23:30:00Z','e'),('2024-01-01T11:00:00Z','f');
""")
db.commit()
END
