set -eu
awk '
  /^\[/ { section = $0 }
  section == "[database]" && /^port *=/ { print "port = 5433"; print "sslmode = require"; next }
  { print }' app.conf > /tmp/new
cat /tmp/new > app.conf
