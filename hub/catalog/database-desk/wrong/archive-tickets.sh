python3 - <<'END'
import sqlite3
sqlite3.connect("tickets.db").executescript("""INSERT INTO archived_ticket SELECT * FROM ticket WHERE closed < '2024-01-01'; INSERT INTO archived_comment SELECT * FROM comment WHERE ticket_id IN (SELECT id FROM archived_ticket);
DELETE FROM comment WHERE ticket_id IN (SELECT id FROM archived_ticket); DELETE FROM ticket WHERE id IN (SELECT id FROM archived_ticket);""")
END
