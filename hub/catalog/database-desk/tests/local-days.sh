#!/bin/bash
cd "$WORKDIR" || exit 1
printf '2024-01-01 1 1\n2024-03-30 1 1\n2024-03-31 3 2\n2024-04-01 3 2\n2024-10-26 1 1\n2024-10-27 2 1\n2024-10-28 2 1\n' | as-agent cmp -s - days.txt || { echo "days.txt is: $(as-agent head -c 300 days.txt 2>&1)"; exit 1; }
