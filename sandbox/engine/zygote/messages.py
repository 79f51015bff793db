"""Messages between the engine's server and its zygote."""

import socket
import struct
import sys

SOCKET_KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM

# To the zygote: kind, number of the run, and for START its disk_mb, processes and number of control groups to join.
ORDER = struct.Struct(">cIIHB")
# From the zygote: kind, number of the run, exit code, microseconds of processor time, peak memory in bytes. After a
# FAULT follows text.
ENDED = struct.Struct(">cIiQQ")
START, KILL, EXITED, FAULT = b"S", b"K", b"X", b"F"
