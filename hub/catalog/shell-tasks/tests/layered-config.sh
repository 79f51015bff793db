#!/bin/bash
cd "$WORKDIR" || exit 1
as-agent cmp -s - effective.txt <<'END' || { echo "effective.txt is: $(as-agent head -c 800 effective.txt 2>&1)"; exit 1; }
cache.size=64
log.level=debug
server.banner="hello = world ; always"
server.host=10.0.0.5
server.port=9090
server.url=https://example.org/?a=1&b=2
END
