#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import re, sys
found = open("app.conf", encoding="utf-8", newline="").read().splitlines()
before = """# Settings of the application.
# The port of [database] is moved to 5433 in May.

[web]
port = 8000
host = 0.0.0.0

[database]
# port = 5431
host = db.internal
PORT
name = shop

[cache]
port = 5432
host = cache.internal""".splitlines()
start, end = found.index("[database]") if "[database]" in found else sys.exit("there is no [database]"), len(found)
for number in range(start + 1, len(found)):
    if found[number].startswith("["):
        end = number
        break
added = [n for n in range(start, end) if re.fullmatch(r"sslmode\s*=\s*require", found[n])]
if len(added) != 1:
    sys.exit("[database] must have sslmode = require once")
del found[added[0]]
found = ["PORT" if re.fullmatch(r"port\s*=\s*5433", line) else line for line in found]
strip = lambda lines: [line for line in lines if line]
if strip(found) != strip(before):
    sys.exit("other lines than those asked for have changed")
END
