set -eu
python3 - <<'END'
import sqlite3
db = sqlite3.connect("tickets.db", isolation_level=None)
db.executescript("""
PRAGMA foreign_keys = ON;
BEGIN;
CREATE TEMP TABLE moving AS
WITH RECURSIVE needed(id) AS (
  SELECT id FROM ticket WHERE closed IS NULL OR closed >= '2024-01-01'
  UNION SELECT t.parent_id FROM ticket t JOIN needed n ON n.id = t.id WHERE t.parent_id IS NOT NULL)
SELECT id FROM ticket WHERE id NOT IN (SELECT id FROM needed);
INSERT INTO archived_ticket SELECT * FROM ticket WHERE id IN moving;
INSERT INTO archived_comment SELECT * FROM comment WHERE ticket_id IN moving;
DELETE FROM comment WHERE ticket_id IN moving;
DELETE FROM ticket WHERE id IN moving AND parent_id IN moving;
DELETE FROM ticket WHERE id IN moving;
COMMIT;
""")
END
