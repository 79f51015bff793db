python3 - <<'END'
import sqlite3
sqlite3.connect("tickets.db").executescript("""CREATE TEMP TABLE m AS SELECT id FROM ticket WHERE closed < '2024-01-01' AND id NOT IN (SELECT parent_id FROM ticket WHERE parent_id IS NOT NULL AND closed IS NULL);
INSERT INTO archived_ticket SELECT * FROM ticket WHERE id IN m; INSERT INTO archived_comment SELECT * FROM comment WHERE ticket_id IN m; DELETE FROM comment WHERE ticket_id IN m; DELETE FROM ticket WHERE id IN m;""")
END
