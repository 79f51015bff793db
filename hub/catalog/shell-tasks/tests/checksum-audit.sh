#!/bin/bash
cd "$WORKDIR" || exit 1
fail() { echo "$1"; exit 1; }
check() { as-agent cmp -s - "$1" || fail "$1 is: $(as-agent head -c 300 "$1" 2>&1)"; }
printf 'bin/run\ndoc files/user guide.txt\n' | check changed.txt || exit 1
printf 'LICENSE\nbin/stop\n' | check missing.txt || exit 1
printf '.env\ndoc files/new page.txt\nlicense\n' | check extra.txt || exit 1
