#!/bin/sh
set -eu
mkdir -p project/src/lib project/bin
echo 'print(1)' > project/src/main.py
echo 'x = 1' > project/src/lib/x.py
echo 'echo run' > project/bin/run
echo notes > 'project/read me.txt'
chmod 755 project project/src project/src/lib project/bin
chmod 644 project/src/main.py 'project/read me.txt'
chmod 666 project/src/lib/x.py
chmod 744 project/bin/run
