#!/bin/bash
set -u
cd "$WORKDIR" || exit 1
fail() { echo "$1"; exit 1; }
printf 'id,name,price\n2,desk,140.00\n4,pen,1.20\n7,chair,55.00\n10,lamp,25.00\n31,clip,9.50\n' | as-agent cmp -s - all.csv || fail "all.csv is: $(as-agent head -c 400 all.csv 2>&1)"
