set -eu
python3 - <<'END'
import pathlib
path = pathlib.Path("bus/core.py")
text = path.read_text()
text = text.replace("        entry = (handler, once)\n", "        entry = [handler, once]\n").replace("        return lambda: self.handlers[name].remove(entry)\n", "        return lambda: self._end(name, entry)\n\n    def _end(self, name, entry):\n        self.handlers[name] = [other for other in self.handlers[name] if other is not entry]\n")
path.write_text(text[:text.index("        count = 0")] + """        count, errors = 0, []
        for entry in list(self.handlers.get(name, [])):
            if not any(entry is other for other in self.handlers[name]):
                continue
            handler, once = entry
            if once:
                self._end(name, entry)
            count += 1
            try:
                handler(value)
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return count
""")
path = pathlib.Path("bus/log.py")
path.write_text(path.read_text().replace("lambda value: seen", "lambda value, name=name: seen"))
END
