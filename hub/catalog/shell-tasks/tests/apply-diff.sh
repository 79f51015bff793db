#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import pathlib, sys
expected = {
    "main.py": '''"""Entry point."""
# added since the diff was made
# and one more line

import sys
from lib import shapes


def main():
    if len(sys.argv) != 2:
        return usage()
    size = int(sys.argv[1])
    print(shapes.square(size))
    print(round(shapes.circle(size), 2))


def usage():
    print("usage: main SIZE")
    print("prints two areas")


if __name__ == "__main__":
    main()
''',
    "lib/shapes.py": "import math\n\n\ndef square(a):\n    return a * a\n\n\ndef circle(r):\n    return math.pi * r * r\n",
    "lib/units.py": "INCH = 2.54\n# ---- end\n",
    "lib/__init__.py": "",
}
root = pathlib.Path("src")
found = {str(p.relative_to(root)): p.read_bytes().decode() for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
if sorted(found) != sorted(expected):
    sys.exit(f"src has: {sorted(found)}")
for name in expected:
    if found[name] != expected[name]:
        sys.exit(f"{name} differs from what the diff gives")
END
