"""The system call filter of a run: an allowlist; every other call fails with EPERM."""

import ctypes
import errno
import struct

from . import syscalls

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL_PROCESS = 0x80000000
_SECCOMP_SET_MODE_FILTER = 1
_FLAG_SPEC_ALLOW = 4  # without it some processors run the whole process slower

# Offsets in struct seccomp_data: number, arch, then six 64-bit arguments (little-endian: low word first).
_NUMBER, _ARCH = 0, 4

_DENY = struct.pack("=HBBI", 0x06, 0, 0, _ERRNO | errno.EPERM)

_ALWAYS = """
read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 open openat openat2 close close_range creat
lseek dup dup2 dup3 pipe pipe2 fsync fdatasync ftruncate fallocate fadvise64 sendfile copy_file_range stat lstat fstat
newfstatat statx statfs fstatfs access faccessat faccessat2 getdents getdents64 getcwd chdir fchdir rename renameat
renameat2 mkdir mkdirat rmdir link linkat unlink unlinkat symlink symlinkat readlink readlinkat umask mknod mknodat
getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr memfd_create mprotect munmap mremap brk madvise msync
mincore membarrier futex futex_waitv set_robust_list get_robust_list set_tid_address rseq wait4 waitid exit exit_group
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack pause restart_syscall
alarm setitimer getitimer timerfd_create timerfd_settime timerfd_gettime nanosleep clock_nanosleep clock_gettime
clock_getres gettimeofday time times getrusage getrlimit setrlimit getpid getppid gettid getuid geteuid getgid getegid
getresuid getresgid getgroups getpgid getpgrp getsid getpriority sched_yield sched_getaffinity sched_getparam
sched_getscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval getcpu uname sysinfo getrandom
poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2
signalfd4 sendto recvfrom sendmsg recvmsg shutdown getsockname getpeername getsockopt arch_prctl capget
""".split()

# These change files that Landlock does not protect, so they are allowed only if no host file is visible (tier A).
_METADATA = ["chmod", "fchmod", "fchmodat", "utime", "utimes", "utimensat", "futimesat"]
_PROCESSES = ["fork", "vfork", "execve", "execveat", "setsid", "setpgid"]
_SIGNALS = ["kill", "tkill", "tgkill"]
_CLONE_NEW = 0x7E020000  # every CLONE_NEW* flag that clone takes

# Queries of terminals and descriptors by Python's io module. TIOCSTI and all others are denied.
_IOCTLS = [0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451]  # TCGETS TIOCGWINSZ FIONREAD FIONBIO FIONCLEX FIOCLEX
_PRCTLS = [syscalls.PR_SET_NAME, 16, 21, 39]  # set and get name, get seccomp, get no_new_privs
_AF_UNIX, _SOCK_STREAM = 1, 1
_AF_INET, _AF_INET6, _SOCK_DGRAM, _SOCK_SEQPACKET = 2, 10, 2, 5
_PROTOCOLS = [0, 6, 17]  # the default, TCP, UDP

_BOX = """
socketpair bind listen accept accept4 connect sendmmsg recvmmsg chown fchown lchown fchownat setuid setgid setreuid
setregid setresuid setresgid setgroups inotify_init inotify_init1 inotify_add_watch inotify_rm_watch pidfd_open
pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo splice tee sync syncfs sync_file_range readahead setpriority mlock
munlock mmap truncate flock prlimit64 sched_setaffinity setsockopt timer_create timer_settime timer_gettime
timer_getoverrun timer_delete
""".split()
# Parent's death, dumpable, name, seccomp, timer slack, subreaper, no_new_privs, names of memory.
_BOX_PRCTLS = [1, 2, 3, 4, 15, 16, 21, 23, 29, 30, 36, 37, 38, 39, 0x53564D41]
# Attributes, process groups and sizes of terminals, descriptors, and queries of network interfaces.
_BOX_IOCTLS = [0x5401, 0x5402, 0x5403, 0x5404, 0x540F, 0x5410, 0x5413, 0x5414, 0x541B, 0x5421, 0x5450, 0x5451]
_BOX_IOCTLS += [0x8912, 0x8913, 0x8915, 0x8927, 0x8933]

# Allowed commands of fcntl: descriptors, flags, the size of a pipe, seals, and queries of locks. F_SETOWN,
# F_SETOWN_EX and F_SETSIG would signal other processes, which Landlock prevents only from version 6 on; F_SETLEASE and
# F_NOTIFY would delay and watch other users of a shared file.
_F_GETLK, _F_SETLK, _F_SETLKW, _F_OFD_GETLK, _F_OFD_SETLK, _F_OFD_SETLKW = 5, 6, 7, 36, 37, 38
_FCNTLS = [0, 1, 2, 3, 4, _F_GETLK, _F_OFD_GETLK, 1030, 1031, 1032, 1033, 1034]

_O_TRUNC, _O_ACCMODE, _O_WRONLY, _O_RDWR = 0x200, 3, 1, 2
_FARTHEST = 255
_MAP_TYPE, _MAP_PRIVATE, _MAP_ANONYMOUS, _MAP_GROWSDOWN = 0xF, 2, 0x20, 0x100


def _statement(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value & 0xFFFFFFFF)


def _load(offset: int) -> bytes:
    return _statement(0x20, offset)


def _argument(index: int) -> int:
    return 16 + 8 * index


def _return(value: int) -> bytes:
    return _statement(0x06, value)


def _equal(value: int, if_true: int, if_false: int) -> bytes:
    return _statement(0x15, value, if_true, if_false)


def _one_of(index: int, values: list[int]) -> list[bytes]:
    """Allow the call if the low word of the argument is one of `values`, else fail with EPERM."""
    tests = [_equal(value, len(values) - i, 0) for i, value in enumerate(values)]
    return [_load(_argument(index)), *tests, _DENY, _return(_ALLOW)]


def _locking(processes: bool) -> list[bytes]:
    """Allow the harmless commands of fcntl, and locks as described in `_rules`."""
    succeed = _return(_ERRNO | 0)
    real = [_F_SETLK, _F_SETLKW] if processes else []
    unreal = [] if processes else [_F_SETLK, _F_SETLKW, _F_OFD_SETLK, _F_OFD_SETLKW]
    allowed = [*_FCNTLS, *real]
    tests = [_equal(value, len(allowed) + len(unreal) - i, 0) for i, value in enumerate(allowed)]
    tests += [_equal(value, len(unreal) - i + 1, 0) for i, value in enumerate(unreal)]
    return [_load(_argument(1)), *tests, _DENY, _return(_ALLOW), succeed]


def _truncating(index: int) -> list[bytes]:
    """Allow an open with these flags unless it truncates without asking for write access.

    Landlock denies write access, but truncation itself only from version 3 on.
    """
    return [
        _load(_argument(index)),
        _statement(0x45, _O_TRUNC, 1, 0),
        _return(_ALLOW),
        _statement(0x54, _O_ACCMODE),
        _equal(_O_WRONLY, 2, 0),
        _equal(_O_RDWR, 1, 0),
        _DENY,
        _return(_ALLOW),
    ]


def _mapping(shared: bool) -> list[bytes]:
    """Allow mappings that count as address space and, unless `shared`, as data: no stacks, no shared memory."""
    limited = [_load(_argument(3)), _statement(0x45, _MAP_GROWSDOWN, 0, 1), _DENY]
    if shared:
        return [*limited, _return(_ALLOW)]
    anonymous = [_statement(0x45, _MAP_ANONYMOUS, 1, 0), _return(_ALLOW)]
    return [*limited, *anonymous, _statement(0x54, _MAP_TYPE), _equal(_MAP_PRIVATE, 1, 0), _DENY, _return(_ALLOW)]


def _unless(flags: int, index: int = 0) -> list[bytes]:
    """Allow the call if the argument has none of the flags, else fail with EPERM."""
    return [_load(_argument(index)), _statement(0x45, flags, 1, 0), _return(_ALLOW), _DENY]


def _decide(steps: list[tuple[int, list[bytes]]]) -> list[bytes]:
    """A search tree over call numbers; each step applies from its number to that of the next step.

    A list would be walked hundreds of times, since the kernel tries every number when a filter is installed.
    """
    if len(steps) == 1:
        return steps[0][1]
    middle = len(steps) // 2
    below, above = _decide(steps[:middle]), _decide(steps[middle:])
    if len(below) > _FARTHEST:  # a conditional jump has eight bits, another one 32
        return [_statement(0x35, steps[middle][0], 0, 1), _statement(0x05, len(below)), *below, *above]
    return [_statement(0x35, steps[middle][0], len(below), 0), *below, *above]


def _rules(
    own_pid: int, processes: bool, metadata: bool, signals: bool, truncation: bool, shared: bool
) -> dict[str, list[bytes]]:
    """Return the rules of all calls that are not simply denied.

    A run could lock files that others use and that it may only read. In a run of one process, locks on its own files
    have no effect, so every lock reports success and none is made. A run with child processes has record locks of the
    kernel, which SQLite needs, and no others.
    """
    allowed = [*_ALWAYS]
    for names, wanted in ((_METADATA, metadata), (_PROCESSES, processes), (_SIGNALS, signals)):
        allowed += names if wanted else []
    rules = {name: [_return(_ALLOW)] for name in allowed}
    rules["clone3"] = [_return(_ERRNO | errno.ENOSYS)]  # its flags lie in memory; libc falls back to clone
    thread = [_load(_argument(0)), _statement(0x45, syscalls.CLONE_THREAD, 0, 1), _return(_ALLOW), _DENY]
    rules["clone"] = _unless(_CLONE_NEW) if processes else thread
    if not signals:
        rules |= {name: _one_of(0, [own_pid]) for name in ("kill", "tgkill")}
    rules["ioctl"] = _one_of(1, _IOCTLS)
    rules["fcntl"] = _locking(processes)
    if not processes:
        rules["flock"] = [_return(_ERRNO | 0)]
    rules["mmap"] = _mapping(shared)
    if truncation:
        rules["truncate"] = [_return(_ALLOW)]
    else:
        rules |= {"open": _truncating(1), "openat": _truncating(2)}
        rules["openat2"] = [_return(_ERRNO | errno.ENOSYS)]  # its flags lie in memory
    rules["prctl"] = _one_of(0, _PRCTLS)
    rules |= {name: _one_of(0, [0, own_pid]) for name in ("prlimit64", "sched_setaffinity")}
    stream = [_load(_argument(1)), _statement(0x54, 0xF), _equal(_SOCK_STREAM, 0, 1), _return(_ALLOW), _DENY]
    rules["socketpair"] = [_load(_argument(0)), _equal(_AF_UNIX, 1, 0), _DENY, *stream]
    return rules


def build(
    *, own_pid: int, processes: bool, metadata: bool, signals: bool, truncation: bool, shared: bool = True
) -> bytes:
    """Return the BPF program.

    own_pid     the only process that kill, prlimit64 and sched_setaffinity may name, besides 0 for the last two
    processes   whether fork and exec are allowed
    metadata    whether chmod and utime are allowed
    signals     whether any process may be signalled, if something else restricts signals to the run
    truncation  whether files may be truncated by path, if something else restricts that to the run's files
    shared      whether anonymous memory may be shared, which the limit of the data segment does not count
    """
    return _assemble(_rules(own_pid, processes, metadata, signals, truncation, shared))


def build_for_box() -> bytes:
    """Return the BPF program of a box of a workspace, whose file system, network and processes are its own.

    It allows what programs of a shell need, also local sockets and a change of the user. New namespaces, mounts,
    tracing, keys, io_uring, bpf and every call that is not listed fail.
    """
    rules = {name: [_return(_ALLOW)] for name in (*_ALWAYS, *_METADATA, *_PROCESSES, *_SIGNALS, *_BOX)}
    rules |= {name: [_return(_ERRNO | errno.ENOSYS)] for name in ("clone3", "openat2", "fchmodat2")}
    rules["clone"] = _unless(_CLONE_NEW)
    locks = [_F_SETLK, _F_SETLKW, _F_OFD_SETLK, _F_OFD_SETLKW]
    rules["fcntl"] = _one_of(1, [*_FCNTLS, *locks])
    rules["prctl"] = _one_of(0, _BOX_PRCTLS)
    unknown = _return(_ERRNO | errno.ENOTTY)
    rules["ioctl"] = [*_only(1, _BOX_IOCTLS, otherwise=unknown), _return(_ALLOW)]
    types = [_SOCK_STREAM, _SOCK_DGRAM]
    rules["socket"] = [
        *_only(0, [_AF_UNIX, _AF_INET, _AF_INET6]),
        *_only(1, types, mask=0xF),
        *_only(2, _PROTOCOLS),
        _return(_ALLOW),
    ]
    rules["socketpair"] = [*_only(0, [_AF_UNIX]), *_only(1, [*types, _SOCK_SEQPACKET], mask=0xF), _return(_ALLOW)]
    return _assemble(rules)


def _only(index: int, values: list[int], *, mask: int = 0xFFFFFFFF, otherwise: bytes = _DENY) -> list[bytes]:
    """Continue if the masked low word of the argument is one of `values`, else end with *otherwise*:

    EPERM by default.
    """
    tests = [_equal(value, len(values) - i, 0) for i, value in enumerate(values)]
    return [_load(_argument(index)), _statement(0x54, mask), *tests, otherwise]


def _assemble(rules: dict[str, list[bytes]]) -> bytes:
    by_number = {syscalls.NUMBERS[name]: rule for name, rule in rules.items() if name in syscalls.NUMBERS}
    steps: list[tuple[int, list[bytes]]] = [(0, [_DENY])]
    for number in range(max(by_number) + 2):
        rule = by_number.get(number, [_DENY])
        if rule != steps[-1][1]:
            steps.append((number, rule))
    program = [
        _load(_ARCH),
        _equal(_AUDIT_ARCH[syscalls.MACHINE], 1, 0),
        _return(_KILL_PROCESS),
        _load(_NUMBER),
        _statement(0x35, _X32_BIT, 0, 1),  # x32 numbers on x86_64; beyond every table elsewhere
        _return(_KILL_PROCESS),
    ]
    return b"".join(program + _decide(steps))


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def installing(program: bytes) -> syscalls.Prepared:
    """Return the call that applies the filter to the calling thread, irrevocably. Needs no_new_privs."""
    argument = _Program(len(program) // 8, program)
    return syscalls.Prepared("seccomp", _SECCOMP_SET_MODE_FILTER, _FLAG_SPEC_ALLOW, ctypes.byref(argument))


def works() -> bool:
    """Return whether the machine's architecture is supported; installing may still fail."""
    return syscalls.MACHINE in _AUDIT_ARCH and bool(syscalls.NUMBERS)
