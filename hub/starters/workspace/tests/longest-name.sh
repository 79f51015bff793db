#!/bin/sh
cd "$WORKDIR" || exit 1
found=$(as-agent cat longest.txt) || { echo "there is no longest.txt"; exit 1; }
[ "$found" = Bartholomew ] || { echo "longest.txt has another name"; exit 1; }
