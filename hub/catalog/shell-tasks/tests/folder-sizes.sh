#!/bin/bash
cd "$WORKDIR" || exit 1
printf '100000 mail\n70000 media\n1599 home pages\n0 none\n' | as-agent cmp -s - sizes.txt || { echo "sizes.txt is: $(as-agent head -c 300 sizes.txt 2>&1)"; exit 1; }
