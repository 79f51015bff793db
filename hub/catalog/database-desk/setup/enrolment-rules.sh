#!/bin/sh
set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("school.db")
db.executescript("""
CREATE TABLE student (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE course (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
CREATE TABLE enrolment (id INTEGER PRIMARY KEY, student_id INTEGER, course_id INTEGER, grade INTEGER, updated TEXT NOT NULL);
CREATE INDEX enrolment_course ON enrolment (course_id);
INSERT INTO student VALUES (1,'Ann'),(2,'Bo'),(3,'Cy');
INSERT INTO course VALUES (1,'Art'),(2,'Biology');
INSERT INTO enrolment VALUES (1,1,1,7,'2024-01-01'),(2,1,2,NULL,'2024-01-02'),(3,2,1,5,'2024-01-03'),(4,9,1,8,'2024-01-04'),(5,2,1,6,'2024-02-01'),(6,3,2,11,'2024-02-02'),(7,3,7,4,'2024-02-03'),(8,2,1,NULL,'2023-12-31'),(9,NULL,2,5,'2024-02-04'),(10,3,1,0,'2024-02-05');
""")
db.commit()
END
