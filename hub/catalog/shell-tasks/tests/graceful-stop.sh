#!/bin/bash
cd "$WORKDIR" || exit 1
printf 'oven 181.5\nroom 21.25\nyard -3.75\nroof 4.5\ncellar 12.125\npond 6.5\nattic 19\nshed 2.75\nEND\n' | as-agent cmp -s - data/measurements.txt || { echo "data/measurements.txt is: $(as-agent head -c 300 data/measurements.txt 2>&1)"; exit 1; }
