#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import pathlib, random, sys
draw = random.Random(4)
expected = {}
for name, size in [("accounts/2023.csv", 9000), ("accounts/2024.csv", 12000), ("letters/to the bank.txt", 700)]:
    expected[name] = bytes(draw.choices(b"0123456789;\nabcdef", k=size))
root = pathlib.Path("restored")
found = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
if sorted(found) != sorted(expected):
    sys.exit(f"restored has: {sorted(found)}")
for name in expected:
    if found[name] != expected[name]:
        sys.exit(f"{name} has other content than what was saved")
END
