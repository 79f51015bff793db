#!/bin/sh
set -eu
mkdir -p 'release/bin' 'release/doc files' release/.meta
echo run > release/bin/run
echo stop > release/bin/stop
echo guide > 'release/doc files/user guide.txt'
echo license > release/LICENSE
echo v1 > release/.meta/version
(cd release && find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum) > release.sha256
echo 'run 2' > release/bin/run
rm release/bin/stop
printf 'guide \n' > 'release/doc files/user guide.txt'
echo extra > 'release/doc files/new page.txt'
echo secret > release/.env
mv release/LICENSE release/license
