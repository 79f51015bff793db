#!/bin/bash
cd "$WORKDIR" || exit 1
fail() { echo "$1"; exit 1; }
as-agent test -x rotate.sh || fail "rotate.sh is not an executable file"
as-agent mkdir -p "/tmp/t/my logs"
log="/tmp/t/my logs/app.log"
write() { as-agent sh -c 'echo "$1" > "$2"' - "$1" "$2"; }
write one "$log"; as-agent chmod 640 "$log"
write other "$log.10.bak"
show() { as-agent sh -c 'cd "/tmp/t/my logs" && for f in *; do echo "$f:$(cat "$f")"; done' | LC_ALL=C sort | tr '\n' ' '; }
expect() { found=$(show); [ "$found" = "$1" ] || fail "after $2 the files are: $found"; }
rotate() { as-agent timeout 10 ./rotate.sh "$log" 3 > /tmp/said 2>&1 || fail "rotate.sh ended with code $?: $(tail -c 200 /tmp/said)"; }
rotate; expect "app.log.10.bak:other app.log.1:one app.log: " "the first call"
[ "$(as-agent stat -c %a "$log")" = 640 ] || fail "the new file has other permissions: $(as-agent stat -c %a "$log")"
rotate; expect "app.log.10.bak:other app.log.1:one app.log: " "a call with an empty log file"
for text in two three four; do write $text "$log"; rotate; done
expect "app.log.10.bak:other app.log.1:four app.log.2:three app.log.3:two app.log: " "four calls that keep 3"
as-agent rm "$log"; rotate
expect "app.log.10.bak:other app.log.1:four app.log.2:three app.log.3:two " "a call without a log file"
write five "$log"
as-agent timeout 10 ./rotate.sh "$log" 1 > /dev/null 2>&1 || fail "rotate.sh with 1 to keep ended with code $?"
expect "app.log.10.bak:other app.log.1:five app.log: " "a call that keeps 1 where there were 3"
