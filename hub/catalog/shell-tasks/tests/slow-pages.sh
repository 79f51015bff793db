#!/bin/bash
cd "$WORKDIR" || exit 1
printf '/cart 705\n/image 673\n/search 588\n/report/2023 503\n' | as-agent cmp -s - slow.txt || { echo "slow.txt is: $(as-agent head -c 300 slow.txt 2>&1)"; exit 1; }
