set -eu
python3 - <<'END'
import pathlib
path = pathlib.Path("logs/records.py")
text = path.read_text()
text = text.replace(r'r"(\S+ \S+) (\w+) (.*)"', r'r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (\w+) (.*)"')
path.write_text(text[:text.index("    for line")] + r"""    for line in lines:
        line = line.rstrip("\r\n")
        match = START.fullmatch(line)
        if match:
            if record:
                yield tuple(record)
            record = list(match.groups())
        elif record:
            record[2] += "\n" + line
    if record:
        yield tuple(record)
""")
path = pathlib.Path("logs/summary.py")
text = path.read_text()
path.write_text(text[:text.index("    found = {}")] + """    levels = [level for _, level, _ in parse(lines)]
    return {level: levels.count(level) for level in LEVELS[LEVELS.index(at_least) :] if level in levels}
""")
END
