"""Escapes to the network and to files (kind D): denied, without a trace on the host."""

from tests.sandbox.conformance.escape import escape

NETWORK = [
    *escape(
        "tcp",
        "No TCP connection leaves the sandbox.",
        """
        def attempt():
            for address in ("127.0.0.1", "172.17.0.1", "::1"):
                trying(address, socket.create_connection, (address, $tcp_port), 0.2)
            trying("listen", lambda: socket.create_server(("127.0.0.1", 0)))
            return managed
        """,
        outside=True,
    ),
    *escape(
        "udp",
        "No datagram leaves the sandbox.",
        """
        def attempt():
            for address in ("127.0.0.1", "172.17.0.1"):
                trying(address, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (address, $udp_port)))
            return managed
        """,
        outside=True,
    ),
    *escape(
        "dns",
        "No name is resolved.",
        """
        def attempt():
            trying("localhost", socket.getaddrinfo, "localhost", 80, socket.AF_INET, socket.SOCK_STREAM, 0, 0)
            trying("resolver", lambda: open("/etc/resolv.conf").read())
            return managed
        """,
        outside=True,
    ),
    *escape(
        "raw-sockets",
        "Raw, packet, netlink and other unusual sockets cannot be created.",
        """
        def attempt():
            for name, family, kind, protocol in (
                ("raw", 2, 3, 1), ("packet", 17, 3, 3), ("netlink", 16, 3, 0), ("unix", 1, 1, 0), ("unix datagram", 1, 2, 0),
                ("vsock", 40, 1, 0), ("alg", 38, 5, 0), ("bluetooth", 31, 3, 1), ("sctp", 2, 1, 132),
            ):
                trying(name, socket.socket, family, kind, protocol)
            return managed
        """,
        outside=True,
    ),
    *escape(
        "unix-sockets",
        "Unix sockets of the host cannot be reached, neither abstract ones nor those in the file system.",
        """
        def attempt():
            for name in ("\\0$abstract", "$home/control.sock", "/var/run/docker.sock", "/run/docker.sock"):
                trying(repr(name), lambda: socket.socket(socket.AF_UNIX).connect(name))
            pair = None
            try:
                pair = socket.socketpair()
            except OSError:
                pass
            if pair:
                trying("connect on a pair", pair[0].connect, "\\0$abstract")
                trying("bind on a pair", pair[0].bind, "\\0stolen")
            return managed
        """,
        outside=True,
    ),
]

FILES = [
    *escape(
        "reads-the-home",
        "No file of the host's home is read.",
        """
        def attempt():
            for path in ("$home/.env", "$home/owned"):
                trying(path, lambda: open(path).read())
            trying("listing", os.listdir, "$home")
            for place in ("/root", "/home"):
                try:
                    managed.extend(p for p in (f"{place}/{n}" for n in os.listdir(place)) if not sys.base_prefix.startswith(p))
                except OSError:
                    pass
            return managed
        """,
        outside=True,
    ),
    *escape(
        "reads-etc",
        "No configuration of the machine is read.",
        """
        def attempt():
            for path in ("/etc/passwd", "/etc/shadow", "/etc/hostname", "/etc/hosts", "/etc/machine-id"):
                trying(path, lambda: open(path).read())
            trying("listing", os.listdir, "/etc")
            trying("var", os.listdir, "/var")
            return managed
        """,
        outside=True,
    ),
    *escape(
        "reads-proc",
        "/proc shows no other process, and no environment variable contains a secret.",
        """
        def attempt():
            if "$secret" in str(os.environ):
                managed.append("own environment")
            for name in (1, os.getppid(), $victim, "self/root/proc/1"):
                for what in ("environ", "mem", "maps", "cmdline", "fd/0", "root/etc/passwd"):
                    if name == os.getpid():
                        continue
                    trying(f"/proc/{name}/{what}", lambda: open(f"/proc/{name}/{what}", "rb"))
            trying("listing", os.listdir, "/proc")
            trying("kernel", lambda: open("/proc/sys/kernel/hostname").read())
            return managed
        """,
        outside=True,
    ),
    *escape(
        "reads-sys-and-devices",
        "Neither /sys nor a device beyond null, zero and urandom is open.",
        """
        def attempt():
            trying("sys", os.listdir, "/sys")
            for name in ("mem", "kmem", "kmsg", "tty", "ptmx", "fuse", "kvm", "vda", "sda", "net/tun", "shm", "mqueue", "pts"):
                trying(name, os.open, "/dev/" + name, os.O_RDONLY)
            return managed
        """,
        outside=True,
    ),
    *escape(
        "writes",
        "Nothing can be written outside the run's own directory.",
        """
        def attempt():
            for place in ("/usr", "/usr/lib", "/tmp", "/var/tmp", "/dev/shm", "/dev", "/etc", "/run", "/", "/opt", "/srv", "/mnt",
                          "/proc", sys.base_prefix, os.path.dirname(os.__file__), "$home", "$home/drop"):
                if os.path.realpath(place) == os.path.realpath(os.getcwd()):
                    continue
                name = os.path.join(place, "llmeval-escape")
                trying("file in " + place, lambda: open(name, "w").write("x"))
                trying("directory in " + place, os.mkdir, name + "-d")
                trying("link in " + place, os.symlink, "/etc/shadow", name + "-l")
                trying("fifo in " + place, os.mkfifo, name + "-f")
            return managed
        """,
    ),
    *escape(
        "writes-the-engine",
        "The code of the engine and of Python cannot be changed.",
        """
        def attempt():
            for module in list(sys.modules.values()):
                path = getattr(module, "__file__", None)
                if isinstance(path, str) and path.startswith("/") and not path.startswith(os.getcwd()):
                    trying(path, os.open, path, os.O_WRONLY)
                    trying("unlink " + path, os.rename, path, path + "~")
            return managed[:5]
        """,
    ),
    *escape(
        "changes-a-file",
        "Mode, times, owner, attributes and length of a host's file cannot be changed.",
        """
        def attempt():
            path = "$home/owned"
            trying("chmod", os.chmod, path, 0o777)
            trying("utime", os.utime, path, (1, 1))
            trying("chown", os.chown, path, os.getuid(), os.getgid())
            trying("xattr", os.setxattr, path, "user.x", b"x")
            trying("truncate", os.truncate, path, 0)
            trying("unlink", os.unlink, path)
            trying("rename", os.rename, path, "$home/drop/moved")
            trying("link", os.link, path, "here")
            calling("fchmodat2", 452, -100, path.encode(), 0o777, 0)
            return managed
        """,
        outside=True,
    ),
    *escape(
        "truncates-a-file",
        "No file of the host is truncated, by path or by opening it, whatever the access mode.",
        """
        def attempt():
            path = "$home/owned"
            trying("truncate", os.truncate, path, 0)
            for mode in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, 3):  # 3 requests no access but checks both permissions
                trying(f"open in mode {mode}", os.open, path, mode | os.O_TRUNC)
                how = ctypes.create_string_buffer(struct.pack("QQQ", mode | os.O_TRUNC, 0, 0))
                calling(f"openat2 in mode {mode}", 437, -100, path.encode(), how, 24)
            trying("creat", os.open, path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
            return managed
        """,
        outside=True,
    ),
    *escape(
        "symbolic-link-escape",
        "A symbolic link in the run's own directory leads nowhere else.",
        """
        def attempt():
            for name, target in (("shadow", "/etc/passwd"), ("home", "$home/.env"), ("drop", "$home/drop/written")):
                try:
                    os.symlink(target, name)
                except OSError:
                    continue
                trying("read " + target, lambda: open(name).read())
                trying("write " + target, lambda: open(name, "a").write("x"))
            trying("dots", lambda: open("../" * 12 + "etc/passwd").read())
            trying("dots to home", lambda: open("../" * 12 + "$home/.env").read())
            return managed
        """,
        outside=True,
    ),
    *escape(
        "descriptors",
        "No open descriptor refers to a directory, a file, a device or a named socket.",
        """
        def attempt():
            for fd in range(4096):
                try:
                    state = os.fstat(fd)
                except OSError:
                    continue
                if fd == 0 and stat.S_ISREG(state.st_mode) and state.st_nlink == 0:
                    continue  # a program's input, in memory
                if fd == 0 and os.path.exists(".stdin") and os.path.samestat(state, os.stat(".stdin")):
                    continue  # a program's input, in the run's own directory
                if stat.S_ISDIR(state.st_mode) or stat.S_ISREG(state.st_mode) or stat.S_ISBLK(state.st_mode):
                    managed.append(f"file or directory on {fd}")
                if stat.S_ISCHR(state.st_mode) and os.major(state.st_rdev) != 1:
                    managed.append(f"device on {fd}")
                if fd > 2 and stat.S_ISCHR(state.st_mode):
                    managed.append(f"device on {fd}")
                if stat.S_ISSOCK(state.st_mode):
                    end = socket.socket(fileno=os.dup(fd))
                    if end.family != socket.AF_UNIX or end.getsockname() or end.getpeername():
                        managed.append(f"socket with a name on {fd}")
                if fd > 2 and not stat.S_ISSOCK(state.st_mode) and not stat.S_ISFIFO(state.st_mode):
                    managed.append(f"something unusual on {fd}: {stat.filemode(state.st_mode)}")
            return managed
        """,
        outside=True,
    ),
]

TENANTS = [
    *escape(
        "file-of-another-run",
        "A file that one run leaves cannot be seen by the next.",
        """
        def attempt():
            for place in (".", "/tmp", "/dev/shm", "/var/tmp", "/box", "/box/work"):
                trying(place, os.stat, place + "/llmeval-left")
            return managed + [name for name in os.listdir(".") if "left" in name]
        """,
        before="""
        for place in (".", "/tmp", "/dev/shm", "/var/tmp", "/box", "/box/work"):
            trying(place, lambda: open(place + "/llmeval-left", "w").write("x"))
        """,
    ),
    *escape(
        "segment-of-another-run",
        "Shared memory, semaphores and queues of other runs and of the host cannot be accessed.",
        """
        def attempt():
            for key in ($shm_key, 0x4C4C4C4C):
                calling("shm", 29, key, 4096, 0)
                calling("sem", 64, key, 1, 0)
                calling("msg", 68, key, 0)
            calling("mq", 240, b"llmeval", 0, 0, 0)
            trying("shm file", os.open, "/dev/shm/llmeval", os.O_RDWR)
            return managed
        """,
        before="""
        calling("shm", 29, 0x4C4C4C4C, 4096, 0o1666)
        calling("sem", 64, 0x4C4C4C4C, 1, 0o1666)
        calling("msg", 68, 0x4C4C4C4C, 0o1666)
        calling("mq", 240, b"llmeval", 0o102, 0o666, 0)
        trying("shm file", os.open, "/dev/shm/llmeval", os.O_RDWR | os.O_CREAT)
        """,
        outside=True,
    ),
    *escape(
        "memory-of-another-run",
        "Changes of one run to the interpreter do not affect the next.",
        """
        def attempt():
            import builtins, json
            if hasattr(builtins, "left") or hasattr(sys, "left") or "left" in sys.modules or "LEFT" in os.environ:
                managed.append("a name left behind")
            if json.loads("1") != 1 or abs(-1) != 1 or sys.gettrace():
                managed.append("a patched module")
            return managed
        """,
        before="""
        import builtins, json
        builtins.left = sys.left = sys.modules["left"] = 1
        os.environ["LEFT"] = "1"
        json.loads = lambda text: None
        builtins.abs = lambda x: 0
        sys.settrace(lambda *args: None)
        """,
    ),
    *escape(
        "collected-link",
        "Links to secrets, pipes and devices in the run's directory are never followed when files are collected.",
        """
        def attempt():
            for name in ("result", "artifact", "stdout", "tools.py", "output.json"):
                try:
                    os.symlink("$home/.env", name)
                except OSError:
                    pass
            try:
                os.mkfifo("pipe")
            except OSError:
                pass
            return managed
        """,
    ),
]

ROWS = [*NETWORK, *FILES, *TENANTS]
