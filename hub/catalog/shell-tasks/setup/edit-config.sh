#!/bin/sh
set -eu
cat > app.conf <<'END'
# Settings of the application.
# The port of [database] is moved to 5433 in May.

[web]
port = 8000
host = 0.0.0.0

[database]
# port = 5431
host = db.internal
port = 5432
name = shop

[cache]
port = 5432
host = cache.internal
END
