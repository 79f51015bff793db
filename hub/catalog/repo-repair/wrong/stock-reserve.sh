python3 - <<'END'
import pathlib
path = pathlib.Path("stock/orders.py")
text = path.read_text().replace("self.reserved.get(number, [])", "self.reserved.pop(number, [])")
path.write_text(text.replace("        for item, amount in lines:\n            self", "        from stock.shelf import Shortage\n        for item, amount in lines:\n            if amount > self.shelf.free[item]:\n                raise Shortage(item)\n        for item, amount in lines:\n            self"))
END
