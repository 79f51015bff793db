#!/bin/bash
cd "$WORKDIR" || exit 1
printf 'Ash,7,8,60\nElm,4,5,30\nElm,4,13,1\nOak,1,3,30\nOak,2,3,30\nOak,10,11,60\n' | as-agent cmp -s - conflicts.csv || { echo "conflicts.csv is: $(as-agent head -c 300 conflicts.csv 2>&1)"; exit 1; }
