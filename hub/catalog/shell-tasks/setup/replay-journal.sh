#!/bin/sh
set -eu
printf 'colour blue\nlimit 10\nowner ann lee\nzone east\n' > snapshot.txt
printf '%s\n' 'set limit 12' 'begin' 'set colour red' 'del zone' 'abort' 'set motto keep  both spaces' 'begin' \
  'set owner bob' 'set temp 1' 'commit' 'del temp' 'del never-there' 'set zone west' 'begin' 'set limit 99' 'del colour' 'commit' \
  'set Alpha 1' 'begin' 'del owner' 'set limit 500' > journal.log
printf 'comm' >> journal.log
