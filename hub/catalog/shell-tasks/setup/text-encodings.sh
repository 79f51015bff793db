#!/bin/sh
set -eu
python3 - <<'END'
import pathlib
def put(path, data):
    path = pathlib.Path("notes", path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
put("menu.txt", "Crème brûlée 4,50\r\nCafé 2,20\r\n".encode("latin-1"))
put("sub folder/names.txt", "Zoë, Jürgen, Łukasz\n".encode())
put("sub folder/price list.txt", "£3 per m²\r\n".encode("latin-1"))
put("plain.txt", b"nothing special\r\nhere\r\n")
put("marked.txt", b"\xef\xbb\xbf" + "Ångström\r\n".encode())
put("lone.txt", b"a carriage return \r inside a line\n")
put("logo.bin", bytes(range(256)) + b"\r\n")
END
