#!/bin/bash
cd "$WORKDIR" || exit 1
fail() { echo "$1"; exit 1; }
as-agent test -x audit.sh || fail "audit.sh is not an executable file"
t="/tmp/t/a tree"
mkdir -p "$t/.git/x" "$t/Zoo" "$t/clean"
for spec in 'a.txt 644' 'both 4757' '.git/x/hidden 602' 'Zoo/root tool 4755' 'group 664' 'setgid 2755' 'Zoo/w 646' 'clean/ok 600' '-dash 666'; do
  mode=${spec##* }; name=${spec% *}
  echo x > "$t/$name"; chmod "$mode" "$t/$name"
done
ln -s Zoo/w "$t/link"
mkdir "$t/shared"; chmod 757 "$t/shared"
chmod 755 /tmp/t "$t" "$t/Zoo" "$t/clean" "$t/.git" "$t/.git/x"
found=$(as-agent timeout 10 ./audit.sh "$t" 2>/dev/null); code=$?
expected=$(printf '%s\n' '-dash' '.git/x/hidden' 'Zoo/root tool' 'Zoo/w' 'both')
[ "$found" = "$expected" ] || fail "it printed: $found"
[ $code = 1 ] || fail "it ended with code $code although files were found"
found=$(as-agent timeout 10 ./audit.sh "$t/clean" 2>&1); code=$?
[ "$found:$code" = ":0" ] || fail "for a folder without such files it printed '$found' and ended with code $code"
