#!/bin/sh
set -eu
mkdir -p service/web/old service/mail/old.d service/db
echo 'listen 80' > service/web/nginx.conf
echo 'listen 8080' > service/web/old/nginx.conf
echo 'relay no' > 'service/mail/main relay.conf'
echo 'relay yes' > service/mail/old.d/main.conf
echo 'notes' > service/mail/main.conf.txt
echo 'port 5432' > service/db/.hidden.conf
echo 'data' > service/db/data.bin
