#!/bin/sh
set -eu
mkdir -p 'source/a b' target
echo new > 'source/a b/file.txt'
echo old > target/stale.txt
