#!/bin/bash
cd "$WORKDIR" || exit 1
printf '%s\n' 'Alpha 1' 'limit 99' 'motto keep  both spaces' 'owner bob' 'zone west' | as-agent cmp -s - state.txt || { echo "state.txt is: $(as-agent head -c 400 state.txt 2>&1)"; exit 1; }
