#!/bin/sh
set -eu
mkdir example
echo 'newest lines' > example/app.log
echo 'older lines' > example/app.log.1
