#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import pathlib, sys
expected = {
    "menu.txt": "Crème brûlée 4,50\nCafé 2,20\n".encode(),
    "sub folder/names.txt": "Zoë, Jürgen, Łukasz\n".encode(),
    "sub folder/price list.txt": "£3 per m²\n".encode(),
    "plain.txt": b"nothing special\nhere\n",
    "marked.txt": "Ångström\n".encode(),
    "lone.txt": b"a carriage return \r inside a line\n",
    "logo.bin": bytes(range(256)) + b"\r\n",
}
root = pathlib.Path("notes")
found = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
if sorted(found) != sorted(expected):
    sys.exit(f"notes has: {sorted(found)}")
for name in expected:
    if found[name] != expected[name]:
        sys.exit(f"{name} is {found[name][:80]!r}")
END
