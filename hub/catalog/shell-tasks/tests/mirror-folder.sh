#!/bin/bash
cd "$WORKDIR" || exit 1
fail() { echo "$1"; exit 1; }
as-agent test -x mirror.sh || fail "mirror.sh is not an executable file"
as-agent bash -c '
set -e
mkdir -p "/tmp/t/from here/sub/empty" "/tmp/t/from here/.hid" "/tmp/t/to there/was folder/deep" "/tmp/t/to there/local" "/tmp/t/to there/extra dir"
cd "/tmp/t/from here"
echo 1 > sub/one; echo 2 > .hid/two; echo 3 > "was folder"; mkdir was-file; echo 4 > was-file/four; echo same > same; echo "-n" > "-n"; chmod 750 sub/one
cd "/tmp/t/to there"
echo x > "was folder/deep/x"; echo y > was-file; echo same > same; echo keep > local/settings; echo keep2 > notes.local; echo gone > "extra dir/gone"; echo gone > .gone
mkdir -p sub; echo keep3 > sub/cache.local; echo old > sub/one
' || fail "the test could not be prepared"
as-agent timeout 20 ./mirror.sh "/tmp/t/from here" "/tmp/t/to there" > /tmp/said 2>&1 || fail "it ended with code $?: $(tail -c 300 /tmp/said)"
show() { as-agent bash -c 'cd "$1" && find . -type f -exec sh -c "for f; do echo \"\$f=\$(cat -- \"\$f\")\"; done" - {} + -o -mindepth 1 -type d -print' - "$1" | LC_ALL=C sort; }
expected=$({ show "/tmp/t/from here"; printf './sub/cache.local=keep3\n./notes.local=keep2\n'; } | LC_ALL=C sort)
found=$(show "/tmp/t/to there")
[ "$found" = "$expected" ] || fail "the differences are: $(diff <(echo "$expected") <(echo "$found") | grep '^[<>]' | tr '\n' ' ')"
[ "$(as-agent stat -c %a '/tmp/t/to there/sub/one')" = 750 ] || fail "permissions of a file were not copied"
[ "$(as-agent cat '/tmp/t/from here/sub/one')" = 1 ] || fail "the source was changed"
as-agent rm -rf "/tmp/t/new one"
as-agent timeout 20 ./mirror.sh "/tmp/t/from here" "/tmp/t/new one" > /tmp/said 2>&1 || fail "for a new target it ended with code $?"
[ "$(show '/tmp/t/new one')" = "$(show '/tmp/t/from here')" ] || fail "a target that did not exist was not created in full"
