#!/bin/bash
set -u
cd "$WORKDIR" || exit 1
fail() { echo "$1"; exit 1; }
[ ! -e server.pid ] || fail "server.pid is left"
as-agent test -x serve.sh && as-agent test -x stop.sh || fail "serve.sh and stop.sh must be executable files"
as-agent timeout 10 ./serve.sh 8123 > /dev/null 2>&1 || fail "serve.sh ended with code $?"
found=$(python3 -I -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:8123/hello.txt", timeout=3).read().decode().strip())' 2>&1)
[ "$found" = "hello from the box" ] || fail "the server answered: $found"
pid=$(as-agent cat server.pid)
[ -d "/proc/$pid" ] || fail "server.pid does not name a process"
as-agent timeout 10 ./stop.sh > /dev/null 2>&1 || fail "stop.sh ended with code $?"
sleep 0.5
python3 -I -c 'import socket; socket.create_connection(("127.0.0.1", 8123), 2)' 2>/dev/null && fail "the server still accepts connections"
[ ! -e server.pid ] || fail "stop.sh left server.pid"
as-agent timeout 10 ./stop.sh > /dev/null 2>&1 || fail "stop.sh without a server ended with code $?"
