python3 - <<'END'
import pathlib
path = pathlib.Path("logs/records.py")
text = path.read_text()
path.write_text(text.replace("record[2] += line.strip()", 'record[2] += "\\n" + line.rstrip("\\n")\n    if record:\n        yield tuple(record)').replace(r'r"(\S+ \S+) (\w+) (.*)"', r'r"(\d\S+ \S+) (\w+) (.*)"'))
path = pathlib.Path("logs/summary.py")
path.write_text(path.read_text().replace("if level >= at_least", "if LEVELS.index(level) >= LEVELS.index(at_least)"))
END
