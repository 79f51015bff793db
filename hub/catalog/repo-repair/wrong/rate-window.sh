python3 - <<'END'
import pathlib
path = pathlib.Path("limits/window.py")
path.write_text(path.read_text().replace("        self.calls.append(now)\n", "").replace("        return len(self.calls) <= self.limit", "        if len(self.calls) >= self.limit:\n            return False\n        self.calls.append(now)\n        return True"))
path = pathlib.Path("limits/clients.py")
path.write_text(path.read_text().replace('setdefault("all"', "setdefault(client"))
END
