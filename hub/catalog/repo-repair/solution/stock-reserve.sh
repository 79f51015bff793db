set -eu
python3 - <<'END'
import pathlib
path = pathlib.Path("stock/shelf.py")
path.write_text(path.read_text().replace("self.free = amounts", "self.free = dict(amounts)").replace("        if amount > self.free[item]:", "        if amount <= 0:\n            raise ValueError(f\"cannot take {amount} of {item}\")\n        if amount > self.free.get(item, 0):"))
path = pathlib.Path("stock/orders.py")
text = path.read_text().replace("self.reserved.get(number, [])", "self.reserved.pop(number, [])")
a, b = text.index("        for item, amount in lines"), text.index("    def release")
path.write_text(text[:a] + """        if number in self.reserved:
            raise ValueError(f"order {number} has a reservation")
        taken = []
        try:
            for item, amount in lines:
                self.shelf.take(item, amount)
                taken.append((item, amount))
        except Exception:
            for item, amount in taken:
                self.shelf.put_back(item, amount)
            raise
        self.reserved[number] = taken

""" + text[b:])
END
