#!/bin/bash
cd "$WORKDIR" || exit 1
awk 'BEGIN { for (i = 1; i <= 300; i++) printf "%04d order %d of %.2f EUR\n", i, (i * 7919) % 10007, (i * 131) % 977 / 4 }' |
  as-agent cmp -s - recovered.log || { echo "recovered.log has $(as-agent wc -l recovered.log 2>&1) lines, or others than the log"; exit 1; }
