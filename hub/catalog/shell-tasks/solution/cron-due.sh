set -eu
cat > /tmp/due.py <<'END'
names = {n: str(i) for i, n in enumerate("sun mon tue wed thu fri sat".split())} | {
    n: str(i) for i, n in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
def values(field, low, high):
    found = set()
    for part in field.lower().split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = low, high
        else:
            ends = [int(names.get(end, end)) for end in span.split("-")]
            first, last = ends[0], ends[-1]
        found |= set(range(first, last + 1, int(step or 1)))
    return found
due = []
for line in open("jobs.cron"):
    parts = line.split(None, 5)
    if len(parts) < 6 or line.lstrip().startswith("#"):
        continue
    minute, hour, day, month, weekday, command = parts
    day_ok = 1 in values(day, 1, 31)
    weekday_ok = 0 in {v % 7 for v in values(weekday, 0, 7)}
    if day.startswith("*") or weekday.startswith("*"):
        today = day_ok and weekday_ok
    else:
        today = day_ok or weekday_ok
    if today and 9 in values(month, 1, 12):
        due += [f"{h:02}:{m:02} {command.strip()}" for h in values(hour, 0, 23) if h < 6 for m in values(minute, 0, 59)]
open("due.txt", "w").write("".join(line + "\n" for line in sorted(due)))
END
python3 /tmp/due.py
