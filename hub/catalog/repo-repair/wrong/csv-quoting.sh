cat > export/cells.py <<'END'
def write_cell(value):
    text = str(value)
    if "," in text or '"' in text:
        return '"' + text.replace('"', '""') + '"'
    return text


def write_rows(rows):
    return "".join(",".join(write_cell(value) for value in row) + "\r\n" for row in rows)
END
cat > export/reading.py <<'END'
import csv


def read_rows(text):
    return list(csv.reader(text.splitlines()))
END
