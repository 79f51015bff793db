set -eu
python3 - <<'END'
import sqlite3
rows = sqlite3.connect("shop.db").execute("""
SELECT category, name, sold FROM (
  SELECT category, name, sold, ROW_NUMBER() OVER (PARTITION BY category ORDER BY sold DESC, name) AS place FROM (
    SELECT p.category, p.name, SUM(s.quantity - s.returned) AS sold FROM product p JOIN sale s ON s.product_id = p.id
    GROUP BY p.id HAVING sold > 0))
WHERE place <= 2 ORDER BY category, place""")
with open("best.tsv", "w") as file:
    file.writelines("\t".join(map(str, row)) + "\n" for row in rows)
END
