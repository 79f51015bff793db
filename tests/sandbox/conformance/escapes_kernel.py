"""Escapes through processes and the kernel's less usual calls (kind D). Numbers are those of x86-64."""

import platform

from tests.sandbox.conformance.escape import DENIED_OR_KILLED, NO_CONTAINMENT_IN_C, escape

ONLY_HERE = dict(NO_CONTAINMENT_IN_C)
if platform.machine() != "x86_64":
    ONLY_HERE |= dict.fromkeys("AB", f"The row's call numbers are those of x86-64, not of {platform.machine()}.")

PROCESSES = [
    *escape(
        "kill",
        "No process outside the run is signalled.",
        """
        def attempt():
            me, parent = os.getpid(), os.getppid()
            for pid in {-1, $victim, -$victim, parent, -parent, 1} - {0, me, -me}:
                if pid == -1:
                    try:
                        os.kill(-1, 9)  # the kernel reports success even where it was allowed to signal nobody
                    except OSError:
                        pass
                    continue
                trying(f"process {pid}", os.kill, pid, 15)
                calling(f"tgkill {pid}", 234, pid, pid, 15)
                calling(f"tkill {pid}", 200, pid, 15)
                calling(f"sigqueue {pid}", 129, pid, 15, b"\\0" * 128)
            return managed
        """,
        skips=ONLY_HERE,
    ),
    *escape(
        "signal-by-descriptor",
        "A run cannot signal the owner of a descriptor.",
        """
        def attempt():
            import fcntl
            parent = os.getppid()
            for pid in {$victim, parent, 1} - {0, os.getpid()}:
                reader, writer = os.pipe()
                try:
                    fcntl.fcntl(reader, 10, 9)  # F_SETSIG
                    fcntl.fcntl(reader, fcntl.F_SETOWN, pid)
                    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
                    os.write(writer, b"x")
                except OSError:
                    pass
                os.close(reader), os.close(writer)
            return managed
        """,
    ),
    *escape(
        "signal-by-owner",
        "A run cannot make a process the owner of a descriptor (by process, thread or group id), which would signal it.",
        """
        def attempt():
            import fcntl
            for pid in {$victim, os.getppid(), 1} - {0, os.getpid()}:
                for kind in (0, 1, 2):  # F_OWNER_TID, F_OWNER_PID, F_OWNER_PGRP
                    end, other = socket.socketpair()
                    trying(f"F_SETSIG for {pid}", fcntl.fcntl, end, 10, 9)
                    trying(f"F_SETOWN_EX {kind} {pid}", fcntl.fcntl, end, 15, struct.pack("ii", kind, pid))
                    trying(f"F_SETOWN {pid}", fcntl.fcntl, end, fcntl.F_SETOWN, pid if kind else -pid)
                    trying(f"FIOSETOWN {pid}", fcntl.ioctl, end, 0x8901, struct.pack("i", pid))
                    trying(f"SIOCSPGRP {pid}", fcntl.ioctl, end, 0x8902, struct.pack("i", pid))
                    fcntl.fcntl(end, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
                    other.send(b"x")
                    end.close(), other.close()
            return managed
        """,
    ),
    *escape(
        "locks",
        "A run cannot lock, lease or watch files and folders that others use.",
        """
        def attempt():
            import fcntl
            for path in (os.__file__, struct.__file__):
                first, second = os.open(path, os.O_RDONLY), os.open(path, os.O_RDONLY)
                try:
                    fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    managed.append("flock")  # the first one is held
                except OSError:
                    pass
                lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)
                try:
                    fcntl.fcntl(first, 37, lock)  # F_OFD_SETLK
                    found = fcntl.fcntl(os.open(path, os.O_RDONLY), 36, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
                    if struct.unpack("hhqqi4x", found)[0] == fcntl.F_RDLCK:
                        managed.append("OFD lock")
                except OSError:
                    pass
                os.close(second)
                trying("lease", fcntl.fcntl, first, fcntl.F_SETLEASE, fcntl.F_RDLCK)
                folder = os.open(os.path.dirname(path), os.O_RDONLY)
                trying("watch", fcntl.fcntl, folder, fcntl.F_NOTIFY, fcntl.DN_MODIFY | fcntl.DN_MULTISHOT)
                calling("inotify", 294, 0)
            return managed
        """,
        skips=ONLY_HERE,
        outside=True,
    ),
    *escape(
        "ptrace",
        "A run cannot access memory, registers or descriptors of another process.",
        """
        def attempt():
            parent = os.getppid()
            room = ctypes.create_string_buffer(64)
            local = struct.pack("QQ", ctypes.addressof(room), 64)
            for pid in {$victim, parent, 1} - {0, os.getpid()}:
                calling(f"attach {pid}", 101, 16, pid, 0, 0)
                calling(f"seize {pid}", 101, 0x4206, pid, 0, 0)
                calling(f"vm_readv {pid}", 310, pid, local, 1, struct.pack("QQ", 0x400000, 64), 1, 0)
                calling(f"vm_writev {pid}", 311, pid, local, 1, struct.pack("QQ", 0x400000, 64), 1, 0)
                calling(f"kcmp {pid}", 312, pid, pid, 0, 0, 0)
                handle = libc.syscall(ctypes.c_long(434), ctypes.c_long(pid), ctypes.c_long(0))
                if handle >= 0:
                    managed.append(f"pidfd_open {pid}")
                    calling(f"pidfd_getfd {pid}", 438, handle, 0, 0)
                    calling(f"pidfd_send_signal {pid}", 424, handle, 15, 0, 0)
            calling("traceme", 101, 0, 0, 0, 0)
            return managed
        """,
        skips=ONLY_HERE,
    ),
    *escape(
        "limits-of-others",
        "Limits, processors and priorities of another process cannot be changed.",
        """
        def attempt():
            import resource
            for pid in {$victim, os.getppid(), 1} - {0, os.getpid()}:
                trying(f"prlimit {pid}", resource.prlimit, pid, resource.RLIMIT_NOFILE, (1, 1))
                trying(f"read limits {pid}", resource.prlimit, pid, resource.RLIMIT_NOFILE)
                trying(f"affinity {pid}", os.sched_setaffinity, pid, {0})
                trying(f"priority {pid}", os.setpriority, os.PRIO_PROCESS, pid, 19)
                trying(f"scheduler {pid}", os.sched_setscheduler, pid, os.SCHED_BATCH, os.sched_param(0))
                calling(f"ioprio {pid}", 251, 1, pid, 0)
            return managed
        """,
        skips=ONLY_HERE,
    ),
    *escape(
        "privileges",
        "A run has no privileges and cannot gain any.",
        """
        def attempt():
            if os.getuid() == 0 or os.geteuid() == 0 or 0 in os.getgroups():
                managed.append("root")
            sets = ctypes.create_string_buffer(24)
            if libc.capget(struct.pack("Ii", 0x20080522, 0), sets) == 0 and any(sets.raw):
                managed.append("capabilities " + sets.raw.hex())
            if libc.prctl(39, 0, 0, 0, 0) != 1:
                managed.append("new privileges")
            for name in ("setuid", "setgid", "seteuid", "setegid"):
                trying(name, getattr(os, name), 0)
            trying("setgroups", os.setgroups, [0])
            calling("capset", 126, struct.pack("Ii", 0x20080522, 0), b"\\xff" * 24)
            for option in (8, 24, 38, 4, 23):  # keepcaps, capbset_drop, no_new_privs, dumpable, capbset_read
                if option == 38 and libc.prctl(39, 0, 0, 0, 0) == 1:
                    continue
                if libc.prctl(option, 1, 0, 0, 0) > 0:
                    managed.append(f"prctl {option}")
            return managed
        """,
        skips=ONLY_HERE,
        outside=True,
    ),
]

KERNEL = [
    *escape(
        "filters",
        "A run cannot install BPF programs, neither a system call filter nor a socket filter.",
        """
        def attempt():
            step = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
            program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(step)))
            calling("prctl", 157, 22, 2, ctypes.addressof(program), 0, 0)
            calling("seccomp", 317, 1, 0, ctypes.addressof(program))
            end, other = socket.socketpair()
            calling("socket filter", 54, end.fileno(), 1, 26, ctypes.addressof(program), 16)
            calling("socket buffer", 54, end.fileno(), 1, 7, struct.pack("i", 1 << 20), 4)
            return managed
        """,
        skips=ONLY_HERE,
    ),
    *escape(
        "namespaces",
        "A run cannot create or enter a namespace by unshare, clone, clone3 or setns.",
        """
        def attempt():
            for name, flag in (("user", 0x10000000), ("mount", 0x20000), ("net", 0x40000000), ("pid", 0x20000000),
                               ("ipc", 0x8000000), ("uts", 0x4000000), ("cgroup", 0x2000000)):
                calling("unshare " + name, 272, flag)
                pid = libc.syscall(ctypes.c_long(56), ctypes.c_long(flag | 17), *[ctypes.c_long(0)] * 4)
                if pid == 0: os._exit(0)
                if pid > 0: managed.append("clone " + name)
            arguments = ctypes.create_string_buffer(struct.pack("QQQQQQQQ", 0x10000000, 0, 0, 0, 17, 0, 0, 0))
            pid = libc.syscall(ctypes.c_long(435), arguments, ctypes.c_long(64))
            if pid == 0: os._exit(0)
            if pid > 0: managed.append("clone3")
            for fd in range(64):
                calling(f"setns {fd}", 308, fd, 0)
            return managed
        """,
        skips=ONLY_HERE,
    ),
    *escape(
        "mounts",
        "A run cannot mount, move mounts or change its root.",
        """
        def attempt():
            calling("mount", 165, b"none", b".", b"tmpfs", 0, 0)
            calling("bind", 165, b"/", b".", 0, 4096, 0)
            calling("remount", 165, b"none", b"/", 0, 32 | 4096, 0)
            calling("umount", 166, b"/", 2)
            calling("chroot", 161, b".")
            calling("pivot_root", 155, b".", b".")
            calling("fsopen", 430, b"tmpfs", 0)
            calling("open_tree", 428, -100, b"/", 1)
            calling("mount_setattr", 442, -100, b"/", 0, struct.pack("QQQQ", 0, 1, 0, 0), 32)
            calling("open_by_handle_at", 304, -100, b"\\0" * 64, 0)
            return managed
        """,
        skips=ONLY_HERE,
    ),
    *escape(
        "kernel-interfaces",
        "Kernel interfaces with a history of vulnerabilities are closed: io_uring, bpf, userfaultfd, keys, perf and similar.",
        """
        def attempt():
            room = ctypes.create_string_buffer(256)
            for name, number, *args in (
                ("io_uring_setup", 425, 1, room), ("io_uring_register", 427, -1, 0, 0, 0), ("bpf", 321, 0, room, 128),
                ("userfaultfd", 323, 0), ("userfaultfd user", 323, 1), ("keyctl", 250, 0, -3, 1), ("add_key", 248, b"user", b"x", b"y", 1, -1),
                ("request_key", 249, b"user", b"x", 0, -1), ("perf_event_open", 298, room, 0, -1, -1, 0),
                ("personality", 135, 0x0040000), ("fanotify", 300, 0, 0), ("memfd_secret", 447, 0),
                ("syslog", 103, 3, room, 64), ("quotactl", 179, 0x80000700, 0, 0, 0), ("acct", 163, 0),
                ("iopl", 172, 3), ("ioperm", 173, 0x80, 1, 1), ("sethostname", 170, b"x", 1), ("swapoff", 168, b"/x"),
                ("settimeofday", 164, 0, 0), ("modify_ldt", 154, 0, room, 16), ("vhangup", 153), ("nice others", 141, 2, 0, 0),
                ("landlock", 444, 0, 0, 1), ("process_mrelease", 448, -1, 0), ("lookup_dcookie", 212, 0, room, 64),
                ("init_module", 175, room, 0, b""), ("name_to_handle_at", 303, -100, b"/", room, room, 0),
            ):
                calling(name, number, *args)
            return managed
        """,
        skips=ONLY_HERE,
    ),
    *escape(
        "x32-calls",
        "A call with an x32 number ends the process.",
        """
        def attempt():
            calling("x32 getppid", 0x40000000 | 110)
            return managed
        """,
        statuses=DENIED_OR_KILLED,
        skips=ONLY_HERE,
    ),
    *escape(
        "i386-calls",
        "A call of the 32-bit interface ends the process.",
        """
        def attempt():
            import mmap
            page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
            page.write(bytes.fromhex("53 b8 14000000 cd80 5b c3"))  # push rbx; mov eax, 20; int 0x80; pop rbx; ret
            call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
            if call() > 0:
                managed.append("i386 getpid")
            return managed
        """,
        statuses=DENIED_OR_KILLED,
        skips=ONLY_HERE,
        outside=True,
    ),
    *escape(
        "terminal-input",
        "A run cannot insert input into a terminal (TIOCSTI): the request itself is denied.",
        """
        def attempt():
            import errno
            fds = [0, 1, 2]
            for path in ("/dev/tty", "/dev/console", "/dev/pts/0"):
                try:
                    fds.append(os.open(path, os.O_RDWR))
                except OSError:
                    pass
            for fd in fds:
                for name, request in (("TIOCSTI", 0x5412), ("TIOCLINUX", 0x541C), ("TIOCSCTTY", 0x540E)):
                    ctypes.set_errno(0)
                    if libc.ioctl(fd, request, b"\\x02x") >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.EBADF):
                        managed.append(f"{name} on {fd}")
            return managed
        """,
        outside=True,
    ),
    *escape(
        "exec",
        "A run without child processes cannot start another program.",
        """
        def attempt():
            for path in ("/bin/sh", "/usr/bin/env", sys.executable or "/usr/bin/python3"):
                trying(path, os.posix_spawn, path, [path, "-c", "exit"], {})
            return managed
        """,
        skips=ONLY_HERE,
        family=False,
        outside=True,
    ),
]

ROWS = [*PROCESSES, *KERNEL]
