#!/bin/sh
set -eu
mkdir -p data/media/raw 'data/home pages/empty' data/mail/.hidden data/none
head -c 70000 /dev/zero > data/media/raw/a.bin
ln data/media/raw/a.bin data/media/same.bin
head -c 1500 /dev/zero > 'data/home pages/index.html'
head -c 99 /dev/zero > 'data/home pages/.draft'
head -c 100000 /dev/zero > data/mail/.hidden/box
ln -s ../media/raw/a.bin data/mail/link
head -c 500 /dev/zero > data/loose.bin
