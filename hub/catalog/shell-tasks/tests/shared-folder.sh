#!/bin/bash
set -u
cd "$WORKDIR" || exit 1
fail() { echo "$1"; exit 1; }
check() { [ "$(stat -c %a "$2" 2>/dev/null)" = "$1" ] || fail "$2 has mode $(stat -c %a "$2" 2>&1), not $1"; }
as-agent sh -c '
check() { found=$(stat -c %a "$2" 2>&1); [ "$found" = "$1" ] || { echo "$2 has mode $found, not $1"; exit 1; }; }
for folder in project project/src project/src/lib project/bin; do check 2770 "$folder"; done
check 660 project/src/main.py; check 660 project/src/lib/x.py; check 660 "project/read me.txt"; check 770 project/bin/run
' || exit 1
