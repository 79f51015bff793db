set -eu
python3 - <<'END'
import pathlib
path = pathlib.Path("delivery/days.py")
text = path.read_text().replace("weekday() < 6", "weekday() < 5")
path.write_text(text[:text.index("    while number")] + """    step = timedelta(days=-1 if number < 0 else 1)
    left = abs(number)
    if not left:
        while not is_working(day, holidays):
            day += step
    while left:
        day += step
        left -= is_working(day, holidays)
    return day
""")
path = pathlib.Path("delivery/promise.py")
path.write_text(path.read_text().replace("""    if ordered.hour > 15:
        day = add_working_days(day, 1)
""", """    if not is_working(day, holidays):
        day = add_working_days(day, 0, holidays)
    elif ordered.hour >= 15:
        day = add_working_days(day, 1, holidays)
"""))
END
