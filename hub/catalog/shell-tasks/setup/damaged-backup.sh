#!/bin/sh
set -eu
python3 - <<'END'
import hashlib, io, pathlib, random, tarfile
draw = random.Random(4)
stream = io.BytesIO()
with tarfile.open(fileobj=stream, mode="w") as archive:
    for name, size in [("accounts/2023.csv", 9000), ("accounts/2024.csv", 12000), ("letters/to the bank.txt", 700)]:
        data = bytes(draw.choices(b"0123456789;\nabcdef", k=size))
        entry = tarfile.TarInfo(name)
        entry.size = size
        archive.addfile(entry, io.BytesIO(data))
data = stream.getvalue()
size = -(-len(data) // 5)
parts = [data[i * size : (i + 1) * size] for i in range(5)]
sums = []
for mirror, damaged in (("north", {1, 4}), ("south", {0, 3})):
    folder = pathlib.Path(mirror)
    folder.mkdir()
    for number, part in enumerate(parts):
        if number in damaged:
            part = part[:1500] + bytes(byte ^ 1 for byte in part[1500:1600]) + part[1600:]
        (folder / f"backup.tar.{number:03}").write_bytes(part)
for number, part in enumerate(parts):
    sums.append(f"{hashlib.sha256(part).hexdigest()}  backup.tar.{number:03}\n")
pathlib.Path("SHA256SUMS").write_text("".join(sums))
END
