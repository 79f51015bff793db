set -eu
python3 - <<'END'
import pathlib
path = pathlib.Path("caching/recent.py")
text = path.read_text()
text = text.replace("        return self.data.get(key) or default\n", """        if key not in self.data:
            return default
        self.data[key] = self.data.pop(key)
        return self.data[key]
""")
text = text.replace("        if len(self.data) >= self.size:\n", "        self.data.pop(key, None)\n        if len(self.data) >= self.size:\n")
path.write_text(text)
path = pathlib.Path("caching/memo.py")
text = path.read_text()
text = text.replace("tuple(kwargs))", "frozenset(kwargs.items()))").replace("found = cache.get(key)", "found = cache.get(key, cache)").replace("if found is None", "if found is cache")
path.write_text(text)
END
