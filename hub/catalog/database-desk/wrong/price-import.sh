python3 - <<'END'
import csv, re, sqlite3
db = sqlite3.connect("products.db")
seen, rejected = [], []
for row in csv.DictReader(open("prices.csv", newline="")):
    if not re.fullmatch(r"\d+(\.\d\d)?", row["price"]) or not row["name"]:
        rejected.append(row["sku"]); continue
    seen.append(row["sku"])
    db.execute("INSERT OR REPLACE INTO product (sku, name, cents) VALUES (?, ?, ?)", (row["sku"], row["name"], round(float(row["price"]) * 100)))
db.execute(f"UPDATE product SET active = 0 WHERE sku NOT IN ({','.join('?' * len(seen))})", seen)
db.commit()
open("rejected.txt", "w").writelines(sku + "\n" for sku in rejected)
END
