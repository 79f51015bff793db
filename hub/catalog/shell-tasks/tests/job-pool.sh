#!/bin/bash
cd "$WORKDIR" || exit 1
fail() { echo "$1"; exit 1; }
as-agent test -x pool.sh || fail "pool.sh is not an executable file"
as-agent mkdir -p "/tmp/t/running" "/tmp/t/my jobs"
job='mkdir running/$$; ls running | wc -l >> counts; sleep 0.4; rmdir running/$$'
as-agent sh -c 'cd /tmp/t && cat > "my jobs/list"' <<END
sleep 1.2; exit 3
$job
$job; exit 7
echo "quoted  'text'" > words
$job
kill -9 \$\$
$job; exit 0
END
as-agent sh -c 'cd /tmp/t && timeout 30 "$1/pool.sh" "my jobs/list" 3 > said 2>&1; echo $? > code' - "$PWD"
[ "$(as-agent cat /tmp/t/code)" = 1 ] || fail "with failing jobs it ended with code $(as-agent cat /tmp/t/code)"
[ "$(as-agent cat /tmp/t/results.txt)" = "$(printf '1 3\n2 0\n3 7\n4 0\n5 0\n6 137\n7 0')" ] || fail "results.txt is: $(as-agent cat /tmp/t/results.txt 2>&1)"
[ "$(as-agent cat /tmp/t/words)" = "quoted  'text'" ] || fail "a command was changed: $(as-agent cat /tmp/t/words 2>&1)"
most=$(as-agent sort -n /tmp/t/counts | tail -n 1 | tr -d ' ')
[ "$most" -ge 2 ] || fail "jobs do not run at the same time"
as-agent sh -c 'cd /tmp/t && rm -f counts && for i in 1 2 3 4 5 6; do echo "$2"; done > six && timeout 30 "$1/pool.sh" six 2 > said 2>&1; echo $? > code' - "$PWD" "$job"
[ "$(as-agent cat /tmp/t/code)" = 0 ] || fail "without failing jobs it ended with code $(as-agent cat /tmp/t/code)"
most=$(as-agent sort -n /tmp/t/counts | tail -n 1 | tr -d ' ')
[ "$most" = 2 ] || fail "with 2 at once, $most jobs ran at the same time"
