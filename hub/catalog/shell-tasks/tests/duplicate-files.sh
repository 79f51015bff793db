#!/bin/bash
set -u
cd "$WORKDIR" || exit 1
fail() { echo "$1"; exit 1; }
found=$(as-agent find store | LC_ALL=C sort)
expected=$(printf '%s\n' store store/keep store/keep/a store/keep/a/again.txt store/keep/three.txt store/new store/new/two.txt)
[ "$found" = "$expected" ] || fail "what is left: $found"
[ "$(as-agent cat store/keep/a/again.txt store/keep/three.txt store/new/two.txt)" = "$(printf 'alpha\ngamma\nbeta')" ] || fail "a file has other content"
