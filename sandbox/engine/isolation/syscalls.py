"""System calls that Python has no function for, with their numbers on x86_64 and aarch64.

The module can be imported on every system; its calls raise OSError on others than Linux.
"""

import ctypes
import os
import sys

LINUX = sys.platform == "linux"
_machine = os.uname().machine.lower() if hasattr(os, "uname") else ""
MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}.get(_machine, _machine)

# name=x86_64/aarch64, from the kernel's asm/unistd_64.h and asm-generic/unistd.h; "-" if it does not exist.
_TABLE = """
read=0/63 write=1/64 readv=19/65 writev=20/66 pread64=17/67 pwrite64=18/68 preadv=295/69 pwritev=296/70
preadv2=327/286 pwritev2=328/287 open=2/- openat=257/56 openat2=437/437 close=3/57 close_range=436/436
creat=85/- lseek=8/62 dup=32/23 dup2=33/- dup3=292/24 pipe=22/- pipe2=293/59 fcntl=72/25 flock=73/32
fsync=74/82 fdatasync=75/83 truncate=76/45 ftruncate=77/46 fallocate=285/47 fadvise64=221/223
sendfile=40/71 copy_file_range=326/285 stat=4/- lstat=6/- fstat=5/80 newfstatat=262/79 statx=332/291
statfs=137/43 fstatfs=138/44 access=21/- faccessat=269/48 faccessat2=439/439 getdents=78/-
getdents64=217/61 getcwd=79/17 chdir=80/49 fchdir=81/50 rename=82/- renameat=264/38 renameat2=316/276
mkdir=83/- mkdirat=258/34 rmdir=84/- link=86/- linkat=265/37 unlink=87/- unlinkat=263/35 symlink=88/-
symlinkat=266/36 readlink=89/- readlinkat=267/78 umask=95/166 mknod=133/- mknodat=259/33 getxattr=191/8
lgetxattr=192/9 fgetxattr=193/10 listxattr=194/11 llistxattr=195/12 flistxattr=196/13
memfd_create=319/279 ioctl=16/29 mmap=9/222 mprotect=10/226 munmap=11/215 mremap=25/216 brk=12/214
madvise=28/233 msync=26/227 mincore=27/232 membarrier=324/283 futex=202/98 futex_waitv=449/449
set_robust_list=273/99 get_robust_list=274/100 set_tid_address=218/96 rseq=334/293 clone=56/220
clone3=435/435 fork=57/- vfork=58/- execve=59/221 execveat=322/281 wait4=61/260 waitid=247/95 exit=60/93
exit_group=231/94 rt_sigaction=13/134 rt_sigprocmask=14/135 rt_sigreturn=15/139 rt_sigpending=127/136
rt_sigtimedwait=128/137 rt_sigsuspend=130/133 sigaltstack=131/132 pause=34/- kill=62/129 tkill=200/130
tgkill=234/131 restart_syscall=219/128 alarm=37/- setitimer=38/103 getitimer=36/102 timer_create=222/107
timer_settime=223/110 timer_gettime=224/108 timer_getoverrun=225/109 timer_delete=226/111
timerfd_create=283/85 timerfd_settime=286/86 timerfd_gettime=287/87 nanosleep=35/101
clock_nanosleep=230/115 clock_gettime=228/113 clock_getres=229/114 gettimeofday=96/169 time=201/-
times=100/153 getrusage=98/165 getrlimit=97/163 setrlimit=160/164 prlimit64=302/261 getpid=39/172
getppid=110/173 gettid=186/178 getuid=102/174 geteuid=107/175 getgid=104/176 getegid=108/177
getresuid=118/148 getresgid=120/150 getgroups=115/158 getpgid=121/155 getpgrp=111/- getsid=124/156
setsid=112/157 setpgid=109/154 getpriority=140/141 sched_yield=24/124 sched_getaffinity=204/123
sched_setaffinity=203/122 sched_getparam=143/121 sched_getscheduler=145/120
sched_get_priority_max=146/125 sched_get_priority_min=147/126 sched_rr_get_interval=148/127
getcpu=309/168 uname=63/160 sysinfo=99/179 getrandom=318/278 poll=7/- ppoll=271/73 select=23/-
pselect6=270/72 epoll_create=213/- epoll_create1=291/20 epoll_ctl=233/21 epoll_wait=232/-
epoll_pwait=281/22 epoll_pwait2=441/441 eventfd=284/- eventfd2=290/19 socketpair=53/199 sendto=44/206
recvfrom=45/207 sendmsg=46/211 recvmsg=47/212 shutdown=48/210 getsockname=51/204 getpeername=52/205
getsockopt=55/209 setsockopt=54/208 prctl=157/167 arch_prctl=158/- capget=125/90 chmod=90/- fchmod=91/52
fchmodat=268/53 utime=132/- utimes=235/- utimensat=280/88 futimesat=261/- signalfd4=289/74
unshare=272/97 setns=308/268 mount=165/40 umount2=166/39 pivot_root=155/41 seccomp=317/277 capset=126/91
mount_setattr=442/442 open_tree=428/428 move_mount=429/429
pidfd_open=434/434 landlock_create_ruleset=444/444 landlock_add_rule=445/445
landlock_restrict_self=446/446 socket=41/198 ptrace=101/117 bpf=321/280 keyctl=250/219
io_uring_setup=425/425 userfaultfd=323/282 perf_event_open=298/241 process_vm_readv=310/270
pidfd_getfd=438/438 shmget=29/194 connect=42/203
bind=49/200 listen=50/201 accept=43/202 accept4=288/242 sendmmsg=307/269 recvmmsg=299/243 chown=92/- fchown=93/55
lchown=94/- fchownat=260/54 setuid=105/146 setgid=106/144 setreuid=113/145 setregid=114/143 setresuid=117/147
setresgid=119/149 setgroups=116/159 inotify_init=253/- inotify_init1=294/26 inotify_add_watch=254/27
inotify_rm_watch=255/28 pidfd_send_signal=424/424 rt_sigqueueinfo=129/138 rt_tgsigqueueinfo=297/240 splice=275/76
tee=276/77 sync=162/81 syncfs=306/267 sync_file_range=277/84 readahead=187/213 setpriority=141/140
fchmodat2=452/452 mlock=149/228 munlock=150/229
"""

_COLUMN = {"x86_64": 0, "aarch64": 1}
NUMBERS: dict[str, int] = {}
if LINUX and MACHINE in _COLUMN and sys.maxsize > 2**32:
    for _entry in _TABLE.split():
        _name, _, _columns = _entry.partition("=")
        _number = _columns.split("/")[_COLUMN[MACHINE]]
        if _number != "-":
            NUMBERS[_name] = int(_number)

_libc = ctypes.CDLL(None, use_errno=True)
if LINUX:
    _libc.syscall.restype = ctypes.c_long


class Prepared:
    """A system call with its arguments converted in advance, so that a fork spends little time on it."""

    __slots__ = ("_arguments", "_name", "_number")

    def __init__(self, name: str, *arguments: object) -> None:
        number = NUMBERS.get(name)
        if number is None:
            raise OSError(38, f"No system call {name} on this machine")
        self._name = name
        self._number = ctypes.c_long(number)
        self._arguments = tuple(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)

    def __call__(self) -> int:
        """Make the call. Raises OSError."""
        result: int = _libc.syscall(self._number, *self._arguments)
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, f"{self._name}: {os.strerror(code)}")
        return result


def call(name: str, *arguments: object) -> int:
    """Make a system call by name. Raises OSError, with ENOSYS if this machine has no such call."""
    return Prepared(name, *arguments)()


def prctl(option: int, second: int = 0, third: int = 0) -> int:
    """prctl(2). Raises OSError."""
    return call("prctl", option, second, third, 0, 0)


# prctl options
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NAME = 15
_PR_CAPBSET_DROP = 24

# unshare, setns and clone flags
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_THREAD = 0x00010000

# mount flags
MS_NOSUID = 2
MS_NODEV = 4
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2
_AT_FDCWD = -100
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_F_EMPTY_PATH = 4


def prepared_mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> Prepared:
    """Return a mount(2) call to be made later."""
    texts = [text.encode() or None for text in (source, target, kind, options)]
    return Prepared("mount", *texts[:3], flags, texts[3])


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2). Raises OSError that names the target."""
    try:
        prepared_mount(source, target, kind, flags, options)()
    except OSError as error:
        raise OSError(error.errno, f"mount {target}: {os.strerror(error.errno or 0)}") from None


def set_mount_attributes(target: str, attributes: int, recursive: bool = True) -> None:
    """Add MOUNT_ATTR_* to a mount and, if recursive, to the mounts below it. Raises OSError."""
    size = ctypes.sizeof(ctypes.c_uint64 * 4)
    structure = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    call("mount_setattr", _AT_FDCWD, target.encode(), 0x8000 if recursive else 0, ctypes.byref(structure), size)


def open_tree(path: str) -> int:
    """Return a descriptor of a new mount of the folder *path*, which has no place yet. Raises OSError."""
    return call("open_tree", _AT_FDCWD, path.encode(), _OPEN_TREE_CLONE | os.O_CLOEXEC)


def move_mount(descriptor: int, target: str) -> None:
    """Give the mount of `open_tree` its place. Raises OSError."""
    call("move_mount", descriptor, b"", _AT_FDCWD, target.encode(), _MOVE_MOUNT_F_EMPTY_PATH)


def keep_capabilities(*numbers: int) -> None:
    """Drop all capabilities but these, also from what a program can get. Raises OSError."""
    with open("/proc/sys/kernel/cap_last_cap") as file:
        last = int(file.read())
    for number in range(last + 1):
        if number not in numbers:
            prctl(_PR_CAPBSET_DROP, number)
    kept = sum(1 << number for number in numbers)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)))


def dropped_capabilities() -> Prepared:
    """Return the capset(2) call that empties the effective, permitted and inheritable sets."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    return Prepared("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
