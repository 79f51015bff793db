python3 - <<'END'
import pathlib
path = pathlib.Path("net/retry.py")
text = path.read_text()
path.write_text(text[:text.index("    for wait in")] + """    waits = delays(attempts, first)
    for number, wait in enumerate(waits, 1):
        try:
            return function()
        except Temporary:
            if number == attempts:
                raise
            sleep(wait)
""")
END
