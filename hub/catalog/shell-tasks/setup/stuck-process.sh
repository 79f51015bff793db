#!/bin/sh
set -eu
mkdir -p out /tmp/services
cat > /tmp/services/pulse.sh <<'END'
#!/bin/sh
while :; do date +%s > /app/out/heartbeat; sleep 0.5; done
END
cat > /tmp/services/idle.sh <<'END'
#!/bin/sh
while :; do sleep 1; done
END
setsid sh /tmp/services/pulse.sh > /dev/null 2>&1 < /dev/null &
setsid sh /tmp/services/idle.sh > /dev/null 2>&1 < /dev/null &
sleep 0.2
