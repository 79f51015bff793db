#!/bin/sh
set -eu
mkdir logs
python3 - <<'END'
import gzip
rows = []
def add(path, *requests):
    for status, ms in requests:
        rows.append((path, status, ms))
add("/cart", (200, 700), (200, 610), (500, 9000))
add("/cart?item=7", (200, 805))
add("/search?q=lamp", (200, 900), (200, 300), (200, 450))
add("/search?q=desk", (200, 700))
add("/search", (404, 5))
add("/export", (200, 4000), (200, 4100), (503, 30000))
add("/home", *[(200, 20 + n) for n in range(9)])
add("/report/2024", (200, 490), (200, 500), (200, 510))
add("/report/2023", (200, 501), (200, 502), (200, 503), (200, 506))
add("/image", (200, 10), (200, 10), (200, 2000), (304, 1))
lines = [f'203.0.113.{i % 9 + 1} - - [0{i % 3 + 1}/Mar/2024:10:{i:02}:00 +0000] "GET {path} HTTP/1.1" {status} 512 {ms}\n'
         for i, (path, status, ms) in enumerate(rows)]
parts = [lines[0::3], lines[1::3], lines[2::3]]
open("logs/access.log", "w").writelines(parts[0])
open("logs/access.log.1", "w").writelines(parts[1])
with gzip.open("logs/access.log.2.gz", "wt") as file:
    file.writelines(parts[2])
END
