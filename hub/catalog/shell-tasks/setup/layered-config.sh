#!/bin/sh
set -eu
mkdir conf
cat > conf/10-default.ini <<'END'
; shipped with the program
[server]
host = 127.0.0.1
port = 8080
banner = "hello = world ; always"
[cache]
size = 64
path = /var/cache/app
[log]
level = info
END
cat > conf/90-host.ini <<'END'
[cache]
path =
[server]
Port=9090
END
cat > conf/50-site.ini <<'END'
# the site
[server]
   host=10.0.0.5   
url = https://example.org/?a=1&b=2
[log]
level = debug
# level = trace
[extra]
END
cat > conf/60-old.ini.disabled <<'END'
[server]
host = 192.0.2.1
END
