set -eu
python3 - <<'END'
import sqlite3
rows = sqlite3.connect("catalogue.db").execute("""
WITH RECURSIVE path(id, name) AS (
  SELECT id, name FROM category WHERE parent_id IS NULL
  UNION ALL SELECT c.id, p.name || '/' || c.name FROM category c JOIN path p ON c.parent_id = p.id),
below(top, id) AS (SELECT id, id FROM category UNION SELECT b.top, c.id FROM below b JOIN category c ON c.parent_id = b.id)
SELECT p.name || ' ' || COUNT(DISTINCT l.product_id) FROM path p JOIN below b ON b.top = p.id
LEFT JOIN placement l ON l.category_id = b.id GROUP BY p.id ORDER BY p.name""")
open("totals.txt", "w").writelines(line + "\n" for (line,) in rows)
END
