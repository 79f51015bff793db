pid=$(grep -la collector.py /proc/[0-9]*/cmdline | grep -v self | cut -d/ -f3 | head -n 1); kill -USR1 $pid; sleep 0.15; kill -TERM $pid; sleep 0.2
