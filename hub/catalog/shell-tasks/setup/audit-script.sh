#!/bin/sh
set -eu
mkdir -p 'sample/sub dir'
echo a > sample/safe.txt
echo b > 'sample/sub dir/open file.txt'
chmod 644 sample/safe.txt
chmod 666 'sample/sub dir/open file.txt'
