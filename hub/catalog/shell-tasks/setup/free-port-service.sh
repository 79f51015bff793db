#!/bin/sh
set -eu
mkdir public
echo 'hello from the box' > public/hello.txt
