#!/bin/sh
set -eu
mkdir -p out /tmp/services
cat > /tmp/services/recorder.py <<'END'
import random, time
draw = random.Random()
file = open("/app/out/orders.log", "w")
for line in open("/tmp/services/input"):
    file.write(line)
file.flush()
other = open("/app/out/trace.log", "w")
open("/tmp/services/ready", "w").close()
while True:
    time.sleep(0.5)
    other.write("alive\n")
    other.flush()
END
awk 'BEGIN { for (i = 1; i <= 300; i++) printf "%04d order %d of %.2f EUR\n", i, (i * 7919) % 10007, (i * 131) % 977 / 4 }' > /tmp/services/input
setsid python3 /tmp/services/recorder.py > /dev/null 2>&1 < /dev/null &
for _ in $(seq 400); do [ -e /tmp/services/ready ] && break; sleep 0.1; done
rm /tmp/services/ready /tmp/services/input out/orders.log
