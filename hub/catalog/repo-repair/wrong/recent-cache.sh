python3 - <<'END'
import pathlib
path = pathlib.Path("caching/recent.py")
path.write_text(path.read_text().replace("        return self.data.get(key) or default\n", "        if key in self.data:\n            self.data[key] = self.data.pop(key)\n        return self.data.get(key, default)\n"))
path = pathlib.Path("caching/memo.py")
path.write_text(path.read_text().replace("tuple(kwargs))", "tuple(kwargs.items()))"))
END
