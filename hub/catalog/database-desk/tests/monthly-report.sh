#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import csv, sys
orders, cents, number = [0] * 13, [0] * 13, 0
for month, count in ((1, 4), (2, 1), (3, 3), (5, 2), (8, 5), (9, 1), (12, 2)):
    for _ in range(count):
        number += 1
        if number % 4 != 3 and month != 9:
            orders[month] += 1
            cents[month] += sum(1000 + 37 * number + 5 * n for n in range(number % 3 + 1))
orders[12] += 1
cents[12] += 700
orders[6] += 1
expected = [["month", "orders", "revenue"]] + [
    [f"2024-{m:02}", str(orders[m]), f"{cents[m] // 100}.{cents[m] % 100:02}"] for m in range(1, 13)]
try:
    found = list(csv.reader(open("report.csv", newline="")))
except Exception as error:
    sys.exit(f"report.csv cannot be read: {error!r}")
for line, wanted in zip(found, expected):
    if line != wanted:
        sys.exit(f"report.csv has the line {line}")
if len(found) != 13:
    sys.exit(f"report.csv has {len(found)} lines")
END
