#!/bin/bash
set -u
cd "$WORKDIR" || exit 1
fail() { echo "$1"; exit 1; }
[ "$(as-agent cat culprit.txt 2>/dev/null)" = /tmp/services/pulse.sh ] || fail "culprit.txt has: $(as-agent head -c 200 culprit.txt 2>&1)"
[ -s out/heartbeat ] || fail "out/heartbeat is gone"
