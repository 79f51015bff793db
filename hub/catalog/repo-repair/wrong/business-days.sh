python3 - <<'END'
import pathlib
path = pathlib.Path("delivery/days.py")
text = path.read_text().replace("weekday() < 6", "weekday() < 5")
path.write_text(text[:text.index("    while number")] + """    step = 1 if number > 0 else -1
    while number:
        day += timedelta(days=step)
        if is_working(day, holidays):
            number -= step
    return day
""")
path = pathlib.Path("delivery/promise.py")
path.write_text(path.read_text().replace("hour > 15", "hour >= 15"))
END
