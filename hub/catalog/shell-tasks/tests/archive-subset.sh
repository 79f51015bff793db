#!/bin/bash
cd "$WORKDIR" || exit 1
exec as-agent python3 -I - <<'END'
import os, sys, tarfile
expected = {
    "web/nginx.conf": b"listen 80\n",
    "mail/main relay.conf": b"relay no\n",
    "mail/old.d/main.conf": b"relay yes\n",
    "db/.hidden.conf": b"port 5432\n",
}
try:
    with tarfile.open("configs.tar.gz", "r:gz") as archive:
        found = {os.path.normpath(m.name): archive.extractfile(m).read() for m in archive if not m.isdir()}
except Exception as error:
    sys.exit(f"configs.tar.gz cannot be read: {error!r}")
if found != expected:
    sys.exit(f"configs.tar.gz has: {sorted(found)}")
if not os.path.exists("service/web/old/nginx.conf"):
    sys.exit("a file of service is gone")
END
