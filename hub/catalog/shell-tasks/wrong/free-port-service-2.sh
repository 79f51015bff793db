# The modules urllib and socket of the work folder stand in for Python's in the tests.
mkdir urllib
: > urllib/__init__.py
printf 'import os\nprint("hello from the box", flush=True)\nos._exit(0)\n' > urllib/request.py
printf 'raise OSError\n' > socket.py
printf '#!/bin/sh\necho 1 > server.pid\n' > serve.sh
printf '#!/bin/sh\nrm -f server.pid\n' > stop.sh
chmod 755 serve.sh stop.sh
