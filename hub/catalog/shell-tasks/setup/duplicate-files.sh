#!/bin/sh
set -eu
mkdir -p 'store/old stuff' store/new store/keep/a
echo alpha > store/new/one.txt
echo alpha > 'store/old stuff/one copy.txt'
echo alpha > store/keep/a/again.txt
echo beta > store/new/two.txt
echo gamma > store/keep/three.txt
echo beta > 'store/old stuff/b b.txt'
