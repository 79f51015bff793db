set -eu
cat > serve.sh <<'END'
#!/bin/bash
cd "$(dirname "$0")" || exit 1
python3 -m http.server --bind 127.0.0.1 --directory public "$1" > /dev/null 2>&1 < /dev/null &
echo $! > server.pid
for _ in $(seq 400); do
  if (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; then exit 0; fi
  sleep 0.05
done
exit 1
END
cat > stop.sh <<'END'
#!/bin/bash
cd "$(dirname "$0")" || exit 1
[ -e server.pid ] || exit 0
kill "$(cat server.pid)" 2> /dev/null
rm -f server.pid
exit 0
END
chmod 755 serve.sh stop.sh
