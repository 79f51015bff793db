#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import sqlite3, sys
db = sqlite3.connect("file:school.db?mode=rw", uri=True, isolation_level=None)
db.execute("PRAGMA foreign_keys = ON")
found = db.execute("SELECT id, student_id, course_id, grade, updated FROM enrolment ORDER BY id").fetchall()
if found != [(1, 1, 1, 7, "2024-01-01"), (2, 1, 2, None, "2024-01-02"), (5, 2, 1, 6, "2024-02-01"), (6, 3, 2, None, "2024-02-02"), (10, 3, 1, 0, "2024-02-05")]:
    sys.exit(f"enrolment has: {found}")
def refused(statement):
    try:
        db.execute(statement)
    except sqlite3.IntegrityError:
        return
    sys.exit(f"this is not refused: {statement}")
insert = "INSERT INTO enrolment (student_id, course_id, grade, updated) VALUES "
refused(insert + "(1, 1, 3, '2025-01-01')")
refused(insert + "(8, 1, 3, '2025-01-01')")
refused(insert + "(2, 8, 3, '2025-01-01')")
refused(insert + "(NULL, 2, 3, '2025-01-01')")
refused(insert + "(2, NULL, 3, '2025-01-01')")
refused(insert + "(2, 2, 11, '2025-01-01')")
refused(insert + "(2, 2, -1, '2025-01-01')")
refused("UPDATE enrolment SET grade = 12 WHERE id = 1")
refused("DELETE FROM course WHERE id = 2")
db.execute(insert + "(2, 2, NULL, '2025-01-01')")
db.execute("DELETE FROM student WHERE id = 3")
if db.execute("SELECT count(*) FROM enrolment WHERE student_id = 3").fetchone() != (0,):
    sys.exit("enrolments of a deleted student stay")
if not any(db.execute(f"PRAGMA index_info({name!r})").fetchall()[0][2] == "course_id" for (name,) in
           db.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND name = 'enrolment_course'")):
    sys.exit("the index enrolment_course is missing")
END
