#!/bin/bash
cd "$WORKDIR" || exit 1
as-agent cmp -s - due.txt <<'END' || { echo "due.txt is: $(as-agent head -c 800 due.txt 2>&1)"; exit 1; }
00:15 /srv/bin/sync-stock
01:00 /srv/bin/check-disk
01:20 /srv/bin/check-disk
01:40 /srv/bin/check-disk
02:10 /srv/bin/weekend-scan
02:15 /srv/bin/sync-stock
02:20 /srv/bin/weekend-scan
02:30 /srv/bin/weekend-scan
03:45 /srv/bin/month-start
04:00 /srv/bin/full-backup
04:15 /srv/bin/sync-stock
04:25 /srv/bin/rotate --keep 4
05:50 /srv/bin/fifth-days
END
