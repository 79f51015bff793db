#!/bin/sh
set -eu
cat > jobs.cron <<'END'
# minute hour day month weekday command
MAILTO=ops@example.org
30 5 * * 1-5 /srv/bin/weekday-report
15 */2 * * * /srv/bin/sync-stock
0 4 13 * 7 /srv/bin/full-backup
45 3 1 * 1 /srv/bin/month-start
0,20,40 1 * 9 * /srv/bin/check-disk
10-30/10 2 * * 6,0 /srv/bin/weekend-scan
5 0 * 8 * /srv/bin/august-only
50 5 */5 * * /srv/bin/fifth-days
0 6 * * * /srv/bin/morning
	25  4  *  sep  sun  /srv/bin/rotate --keep 4
#0 3 * * * /srv/bin/disabled
END
