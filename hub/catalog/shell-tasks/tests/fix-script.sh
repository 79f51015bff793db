#!/bin/bash
set -u
cd "$WORKDIR" || exit 1
fail() { echo "$1"; exit 1; }
mkdir -p /tmp/t/empty "/tmp/t/some files/deep er"
printf 1234567890 > "/tmp/t/some files/a b"
printf 123 > "/tmp/t/some files/.hidden"
printf 12345 > "/tmp/t/some files/deep er/*"
chmod -R a+rX /tmp/t
as-agent test -x total.sh || fail "total.sh cannot be executed"
found=$(as-agent ./total.sh "/tmp/t/some files" 2>&1)
[ "$found" = 18 ] || fail "it prints '$found' for 18 bytes in files with spaces in their names"
found=$(as-agent ./total.sh /tmp/t/empty 2>&1)
[ "$found" = 0 ] || fail "it prints '$found' for an empty folder"
