#!/bin/bash
cd "$WORKDIR" || exit 1
printf 'camp\ttent\t9\nlight\tlamp\t8\nlight\tcandle\t7\nwood\taxe\t8\nwood\tchair\t1\n' | as-agent cmp -s - best.tsv || { echo "best.tsv is: $(as-agent head -c 300 best.tsv 2>&1)"; exit 1; }
