python3 - <<'END'
import sqlite3
rows = sqlite3.connect("shop.db").execute("""SELECT category, name, sold FROM (SELECT category, name, sold, RANK() OVER (PARTITION BY category ORDER BY sold DESC) AS place FROM (
SELECT p.category, p.name, SUM(s.quantity) AS sold FROM product p JOIN sale s ON s.product_id = p.id GROUP BY p.id)) WHERE place <= 2 ORDER BY category, place""")
open("best.tsv", "w").writelines("\t".join(map(str, row)) + "\n" for row in rows)
END
