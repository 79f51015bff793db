#!/bin/bash
cd "$WORKDIR" || exit 1
as-agent cmp -s - totals.txt <<'END' || { echo "totals.txt is: $(as-agent head -c 400 totals.txt 2>&1)"; exit 1; }
Garden 3
Garden/Tools 3
Garden/Tools/Knives 2
Home 5
Home/Bedroom 1
Home/Bedroom/Empty 0
Home/Kitchen 4
Home/Kitchen/Knives 2
Home/Kitchen/Pans 1
END
