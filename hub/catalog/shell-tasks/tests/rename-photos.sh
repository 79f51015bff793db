#!/bin/bash
set -u
cd "$WORKDIR" || exit 1
fail() { echo "$1"; exit 1; }
found=$(as-agent ls -A photos | sort)
expected=$(printf '%s\n' "2021-01-01_new year's eve.png" '2022-12-24_img_0007.jpg' '2023-07-14_beach 1.jpg' '2023-07-15_beach 2.jpg')
[ "$found" = "$expected" ] || fail "the names are: $found"
[ "$(as-agent sed -n 2p 'photos/2023-07-14_beach 1.jpg')" = sea ] || fail "the content of a photo has changed"
[ "$(as-agent sed -n 2p "photos/2021-01-01_new year's eve.png")" = fire ] || fail "the content of a photo has changed"
