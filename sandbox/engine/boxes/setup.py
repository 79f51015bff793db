"""The first process of a box: builds the box around itself, to run the driver."""

import fcntl
import os
import resource
import socket
import stat
import struct
from typing import TypedDict

from ..isolation import namespaces, seccomp, syscalls
from ..isolation.syscalls import MS_BIND, MS_NODEV, MS_NOSUID, MS_PRIVATE, MS_REC

LISTEN_FD = 3
FAULT_FD = 4  # closed before the driver runs
GO_FD = 5
WANTS_IDS = b"I"
_HIGHEST_FD = 6
_NOEXEC = 8
_RDONLY, _NOSUID, _NODEV = 1, 2, 4  # MOUNT_ATTR_*
_DEVICES = {"null": (1, 3), "zero": (1, 5), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_DEVICE_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
_HIDDEN_FILES = """
kcore kmsg keys key-users kallsyms latency_stats timer_list sched_debug modules config.gz iomem ioports slabinfo
vmallocinfo kpagecount kpageflags kpagecgroup
""".split()
_HIDDEN_FOLDERS = ("acpi", "asound", "scsi", "driver", "fs", "bus", "irq", "sysvipc")
_READ_ONLY = ("sys", "sysrq-trigger", "interrupts", "mtrr")
_CAP_KILL, _CAP_SETGID, _CAP_SETUID = 5, 6, 7
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


class Folder(TypedDict):
    """A writable folder of a box, in memory."""

    path: str
    options: str


class ReadOnlyFolder(TypedDict):
    """A folder of the machine, which the box has at another path."""

    source: str
    path: str


class BoxPlan(TypedDict):
    """How the keeper sets up a box.

    root         folder with the files of the image
    name         name of the control group, and of the folder of the box
    state        folder of the box
    uid          the user of the driver outside of the box; the next one is the agent's
    user         the agent's user in the box
    folders      writable folders, in memory
    read_only    folders of the machine that the box can only read
    groups       controller -> folder in which to make the control group
    environment  of the image
    driver       configuration of the driver
    """

    root: str
    name: str
    state: str
    uid: int
    user: int
    folders: list[Folder]
    read_only: list[ReadOnlyFolder]
    groups: dict[str, str]
    memory: int
    processes: int
    cpus: float
    expires_s: float
    environment: dict[str, str]
    driver: str


def become_first_process(plan: BoxPlan, join: list[int], box_filter: bytes) -> None:
    """Build the box and give up every right that its driver does not need. Raises OSError; the process must end then.

    It is process 1 of a pid namespace already, as root of the machine. All namespaces but the user namespace belong to
    that root, so no process inside can change mounts or the network, even with capabilities of its own.
    """
    for group in join:
        os.write(group, b"0")
    os.setsid()
    flags = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET | syscalls.CLONE_NEWIPC
    syscalls.call("unshare", flags | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWCGROUP)
    found = [syscalls.open_tree(folder["source"]) for folder in plan["read_only"]]  # no path leads to them afterwards
    _change_root(plan["root"])
    _mount_folders(plan, found)
    socket.sethostname("workspace")
    _start_loopback()
    for fd in (0, 1, 2):
        os.dup2(os.open("/dev/null", os.O_RDWR), fd)
    syscalls.call("close_range", _HIGHEST_FD, 2**31 - 1, 0)
    _become_user(plan["uid"])
    _set_limits(plan["processes"])
    syscalls.keep_capabilities(_CAP_KILL, _CAP_SETGID, _CAP_SETUID)
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # else /proc/self belongs to root of the machine since the user changed
    seccomp.installing(box_filter)()
    os.environ.clear()
    os.environ.update(plan["environment"])


def _change_root(root: str) -> None:
    """Make the image's files the root, below a layer that only this process writes to."""
    files = os.open(root, os.O_PATH | os.O_DIRECTORY)
    syscalls.mount("none", "/", flags=MS_REC | MS_PRIVATE)
    stage = namespaces.find_stage([root])
    syscalls.mount("llmeval", stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=4m,nr_inodes=2k")
    for name in ("lower", "upper", "work", "root"):
        os.mkdir(f"{stage}/{name}", 0o755)
    syscalls.mount(f"/proc/self/fd/{files}", f"{stage}/lower", flags=MS_BIND)
    os.close(files)
    layers = f"lowerdir={stage}/lower,upperdir={stage}/upper,workdir={stage}/work"
    syscalls.mount("llmeval", f"{stage}/root", "overlay", MS_NOSUID | MS_NODEV, layers)
    os.chdir(f"{stage}/root")
    syscalls.call("pivot_root", b".", b".")
    syscalls.call("umount2", b".", syscalls.MNT_DETACH)
    os.chdir("/")


def _mount_folders(plan: BoxPlan, read_only: list[int]) -> None:
    """Mount /proc, /dev and all folders, then make the root read-only. Links are followed inside the box.

    read_only: descriptors of the read-only folders.
    """
    folders: list[Folder | ReadOnlyFolder] = [*plan["folders"], *plan["read_only"]]
    for path in ("/proc", "/sys", "/dev", *(folder["path"] for folder in folders)):
        os.makedirs(path, exist_ok=True)
    syscalls.mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | _NOEXEC)
    syscalls.mount("sys", "/sys", "tmpfs", MS_NOSUID | MS_NODEV, "mode=555,size=4k,nr_inodes=2")
    syscalls.mount("dev", "/dev", "tmpfs", MS_NOSUID, "mode=755,size=64k,nr_inodes=64")
    os.umask(0)
    for name, numbers in _DEVICES.items():
        os.mknod(f"/dev/{name}", stat.S_IFCHR | 0o666, os.makedev(*numbers))
    os.umask(0o022)
    for name, target in _DEVICE_LINKS.items():
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/shm")
    syscalls.set_mount_attributes("/dev", _RDONLY | _NOSUID, recursive=False)
    for folder in plan["folders"]:
        syscalls.mount("llmeval", folder["path"], "tmpfs", MS_NOSUID | MS_NODEV, folder["options"])
    for descriptor, shared in zip(read_only, plan["read_only"], strict=True):
        syscalls.move_mount(descriptor, shared["path"])
        os.close(descriptor)
        syscalls.set_mount_attributes(shared["path"], _RDONLY | _NOSUID | _NODEV, recursive=False)
    syscalls.set_mount_attributes("/sys", _RDONLY | _NOSUID | _NODEV, recursive=False)
    for name in _HIDDEN_FILES:
        if os.path.exists(f"/proc/{name}"):
            syscalls.mount("/dev/null", f"/proc/{name}", flags=MS_BIND)
    for name in _HIDDEN_FOLDERS:
        if os.path.isdir(f"/proc/{name}"):
            syscalls.mount("/sys", f"/proc/{name}", flags=MS_BIND)
    for name in _READ_ONLY:
        if os.path.exists(f"/proc/{name}"):
            syscalls.mount(f"/proc/{name}", f"/proc/{name}", flags=MS_BIND)
            syscalls.set_mount_attributes(f"/proc/{name}", _RDONLY | _NOSUID | _NODEV, recursive=False)
    syscalls.set_mount_attributes("/", _RDONLY | _NOSUID | _NODEV, recursive=False)


def _start_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        fcntl.ioctl(made, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def _become_user(uid: int) -> None:
    """Leave root for a user that no other process has, and become root of a user namespace with two users."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    syscalls.call("unshare", syscalls.CLONE_NEWUSER)
    os.write(FAULT_FD, WANTS_IDS)
    if os.read(GO_FD, 1) != b"1":
        raise OSError("the keeper has ended")
    os.close(GO_FD)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, 9)
    if os.geteuid() != 0:
        raise OSError("the users of the box are not mapped")


def _set_limits(processes: int) -> None:
    for number, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NOFILE, 1024, 4096),
        (resource.RLIMIT_NPROC, processes, processes),
        (resource.RLIMIT_MEMLOCK, 65536, 65536),
        (resource.RLIMIT_SIGPENDING, 1024, 1024),
        (resource.RLIMIT_MSGQUEUE, 0, 0),
        (resource.RLIMIT_RTPRIO, 0, 0),
        (resource.RLIMIT_NICE, 0, 0),
    ):
        resource.setrlimit(number, (soft, hard))
