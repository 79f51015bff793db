#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import csv, sys
try:
    found = list(csv.reader(open("open.csv", newline="")))
except Exception as error:
    sys.exit(f"open.csv cannot be read: {error!r}")
expected = [["customer", "cents"], ["Birch, Inc.", "5000"], ["Abel & Sons", "1999"], ["Dune", "150"]]
if found != expected:
    sys.exit(f"open.csv has: {found}")
END
