set -eu
python3 - <<'END'
import csv, re, sqlite3
db = sqlite3.connect("products.db")
seen, rejected = [], []
for row in csv.DictReader(open("prices.csv", newline="")):
    seen.append(row["sku"])
    match = re.fullmatch(r"(\d+)(?:\.(\d\d))?", row["price"])
    if not match or not row["name"]:
        rejected.append(row["sku"])
        continue
    cents = int(match[1]) * 100 + int(match[2] or 0)
    db.execute("""INSERT INTO product (sku, name, cents) VALUES (?, ?, ?)
        ON CONFLICT (sku) DO UPDATE SET name = excluded.name, cents = excluded.cents, active = 1""", (row["sku"], row["name"], cents))
db.execute(f"UPDATE product SET active = 0 WHERE sku NOT IN ({','.join('?' * len(seen))})", seen)
db.commit()
open("rejected.txt", "w").writelines(sku + "\n" for sku in rejected)
END
