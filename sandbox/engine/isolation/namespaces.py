"""Namespaces of tier A: an unprivileged user on a read-only root with only Python and the system libraries."""

import os
import sys

from . import syscalls
from .syscalls import MS_BIND, MS_NODEV, MS_NOSUID, MS_PRIVATE, MS_REC

BOX = "/box"  # the tmpfs of a run is mounted on /box/work
WORK = "/box/work"
STDIN = f"{WORK}/.stdin"
INNER_ID = 1000
UID_BASE = 0x70000000  # no distribution assigns these, so no other process has the same uid
_NOBODY = 65534
_DEVICES = ("null", "zero", "urandom")
# The new root is mounted over the first of these that contains none of the trees, in a namespace of its own.
_STAGES = ("/mnt", "/media", "/srv", "/tmp", "/run")
_RDONLY, _NOSUID, _NODEV = 1, 2, 4  # MOUNT_ATTR_*

_NEW = (
    syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWCGROUP
)


def python_trees(packages: tuple[str, ...] = ()) -> list[str]:
    """Return the directories that an interpreter reads: system libraries, its prefix, offered packages."""
    wanted = ["/usr", "/lib", "/lib64", "/lib32", "/opt/python", sys.base_prefix, sys.base_exec_prefix]
    wanted += [path for path in sys.path if os.path.isdir(path)] + list(packages)
    trees: list[str] = []
    for path in sorted({os.path.realpath(path) for path in wanted if os.path.isdir(path)}):
        if path != "/" and not any(path.startswith(tree + "/") for tree in trees):
            trees.append(path)
    return trees


def future_user() -> int:
    """Return the user that `leave_root` tries first."""
    return UID_BASE | os.getpid() if os.geteuid() == 0 else os.geteuid()


def leave_root() -> None:
    """Become an unprivileged user that no other process has. Does nothing unless this is root."""
    if os.geteuid() != 0:
        return
    try:
        os.setgroups([])
    except OSError as error:
        raise OSError(f"Root needs CAP_SETUID and CAP_SETGID to leave root ({error.strerror})") from None
    for uid in (future_user(), _NOBODY):
        try:
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            return
        except OSError:  # a container that maps fewer ids
            continue
    raise OSError("Cannot leave root: neither a private uid nor 65534 is mapped here")


def make_reachable(trees: list[str]) -> None:
    """As root, before leaving root: make trees reachable that lie in a directory closed to others, such as /root.

    In a mount namespace of this process, the closed directory is covered by one that contains only the trees.
    Raises OSError if that is not possible and a tree could not be read.
    """
    closed: dict[str, list[str]] = {}
    for tree in trees:
        parts = tree.split("/")
        for depth in range(2, len(parts) + 1):
            parent = "/".join(parts[:depth])
            if not os.stat(parent).st_mode & 0o001:
                closed.setdefault(parent, []).append(tree)
                break
    if os.geteuid() != 0 or not closed:
        return
    try:
        syscalls.call("unshare", syscalls.CLONE_NEWNS)
    except OSError as error:
        raise OSError(
            f"Python is in {', '.join(closed)}, which only root may read, and root needs CAP_SYS_ADMIN to make it "
            f"readable for code ({error.strerror})"
        ) from None
    syscalls.mount("none", "/", flags=MS_REC | MS_PRIVATE)
    for parent, inside in closed.items():
        kept = [os.open(tree, os.O_PATH | os.O_DIRECTORY) for tree in inside]
        syscalls.mount("llmeval", parent, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
        for tree, fd in zip(inside, kept, strict=True):
            os.makedirs(tree, exist_ok=True)
            syscalls.mount(f"/proc/self/fd/{fd}", tree, flags=MS_BIND | MS_REC)
            os.close(fd)
        syscalls.set_mount_attributes(parent, _RDONLY | _NOSUID | _NODEV)


def enter(trees: list[str]) -> None:
    """Move this process into new namespaces; its next child is process 1 of a pid namespace. Raises OSError.

    Root builds the new file system first, because the interpreter may be in a directory that only root may read, and
    leaves root before it creates the user namespace: RLIMIT_NPROC does not limit root inside one.
    """
    process = os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY)
    try:
        if os.geteuid() == 0:
            syscalls.call("unshare", syscalls.CLONE_NEWNS)
            _change_root(trees)
            leave_root()
            _new_user(process, _NEW)
        else:
            _new_user(process, _NEW)
            _change_root(trees)
    finally:
        os.close(process)


def _new_user(process: int, flags: int) -> None:
    uid, gid = os.geteuid(), os.getegid()
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # else /proc/self belongs to root since the uid changed
    syscalls.call("unshare", syscalls.CLONE_NEWUSER | flags)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{INNER_ID} {uid} 1"),
        ("gid_map", f"{INNER_ID} {gid} 1"),
    ):
        fd = os.open(name, os.O_WRONLY, dir_fd=process)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def find_stage(trees: list[str]) -> str:
    """Return a folder that a new root can be mounted over, because none of the trees is below it."""
    stages = [path for path in _STAGES if os.path.isdir(path) and not any(t.startswith(path) for t in trees)]
    if not stages:
        raise OSError(f"None of {', '.join(_STAGES)} is there to build a new root in")
    return stages[0]


def _change_root(trees: list[str]) -> None:
    """Make a small read-only root out of `trees` and move into it; detach the old one."""
    syscalls.mount("none", "/", flags=MS_REC | MS_PRIVATE)
    stage = find_stage(trees)
    syscalls.mount("llmeval", stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m,nr_inodes=2k")
    for tree in trees:
        os.makedirs(stage + tree, exist_ok=True)
        syscalls.mount(tree, stage + tree, flags=MS_BIND | MS_REC)
        syscalls.set_mount_attributes(stage + tree, _RDONLY | _NOSUID | _NODEV)
    for name in ("bin", "lib", "lib64", "lib32", "sbin"):
        if os.path.islink("/" + name):
            os.symlink(os.readlink("/" + name), f"{stage}/{name}")
    for path in (stage + "/dev", stage + WORK):
        os.makedirs(path)
    for name in _DEVICES:
        os.close(os.open(f"{stage}/dev/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        syscalls.mount(f"/dev/{name}", f"{stage}/dev/{name}", flags=MS_BIND)
    os.symlink(STDIN, f"{stage}/dev/stdin")  # else a link into /proc, which a run does not have
    os.chdir(stage)
    syscalls.call("pivot_root", b".", b".")
    syscalls.call("umount2", b".", syscalls.MNT_DETACH)
    os.chdir("/")
    syscalls.set_mount_attributes("/", _RDONLY | _NOSUID, recursive=False)


def fresh_pid_namespace(own: int) -> list[syscalls.Prepared]:
    """Return the calls that make the next child process 1 of a new pid namespace; `own`: pidfd of this process."""
    # A second unshare is refused while the first one's namespace still waits for children: return to our own first.
    return [
        syscalls.Prepared("setns", own, syscalls.CLONE_NEWPID),
        syscalls.Prepared("unshare", syscalls.CLONE_NEWPID),
    ]


def pidfd_of_self() -> int:
    """Return a descriptor of this process that works without /proc."""
    return syscalls.call("pidfd_open", os.getpid(), 0)


def private_work(size_mb: int, inodes: int) -> list[syscalls.Prepared]:
    """Return the calls that give a process a private, empty, sized directory at WORK, and private System V objects."""
    options = f"mode=700,size={size_mb}m,nr_inodes={inodes}"
    return [
        syscalls.Prepared("unshare", syscalls.CLONE_NEWNS | syscalls.CLONE_NEWIPC),
        syscalls.prepared_mount("work", WORK, "tmpfs", MS_NOSUID | MS_NODEV, options),
    ]
