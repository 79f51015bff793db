set -eu
cat > export/cells.py <<'END'
"""Cells of CSV files as RFC 4180 has them: fields are separated by commas and quoted where necessary."""


def write_cell(value):
    """Return the text of a cell; None is an empty cell. Quotes only where a comma, quote, CR or LF requires them."""
    text = "" if value is None else str(value)
    if any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def write_rows(rows):
    """Return the text of a file; each row ends with CRLF."""
    return "".join(",".join(write_cell(value) for value in row) + "\r\n" for row in rows)
END
cat > export/reading.py <<'END'
"""Reads what `cells` writes."""

import csv
import io


def read_rows(text):
    """Return the rows of a file as lists of texts. Lines end with CRLF or LF; the last may lack its end."""
    return list(csv.reader(io.StringIO(text, newline="")))
END
