set -eu
python3 - <<'END'
import pathlib
for path in pathlib.Path("notes").rglob("*.txt"):
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    path.write_bytes(text.replace("\r\n", "\n").encode())
END
