#!/bin/sh
set -eu
cat > jobs.txt <<'END'
echo first
sleep 0.2; false
echo "third job" > third.out
END
