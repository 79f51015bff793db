"""Control groups: limits and usage figures that include the descendants of a run.

They are optional, and only for runs that may start processes or use packages: without them each process has its own
limits. Root makes a group for the engine before it leaves root, and changes its owner; without root this works only if
a group was delegated to the user.
"""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

_PREFIX = "llmeval-"
_HEADROOM = 16 << 20  # bytes beyond the limit of one process: the fork of the zygote that a run begins as
_NEEDED = ("memory", "pids")
_CPU_PERIOD_US = 100_000


class _Files(NamedTuple):
    """Names of files in the kernel's interface, version 1 or 2."""

    memory_limit: str
    swap_limit: str
    memory_peak: str
    events: str
    cpu: str


_V1 = _Files(
    "memory.limit_in_bytes",
    "memory.memsw.limit_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.oom_control",
    "cpuacct.usage",
)
_V2 = _Files("memory.max", "memory.swap.max", "memory.peak", "memory.events", "cpu.stat")


class Usage(NamedTuple):
    """Resources that a group has used."""

    cpu_ms: float
    peak_mb: float
    out_of_memory: bool


class Group:
    """The group of one run: a directory for each controller, or one for all."""

    def __init__(self, name: str, folders: dict[str, int], files: _Files) -> None:
        """`folders`: controller -> descriptor of the engine's directory."""
        self.name, self.folders, self.files = name, folders, files
        self._own: dict[str, int] = {}

    def make(self, memory: int, processes: int) -> list[int]:
        """Make the group. Return descriptors; a process joins by writing "0" to them. Raises OSError."""
        for folder in set(self.folders.values()):
            os.mkdir(self.name, dir_fd=folder)
        self._own = {controller: self._open_own(folder) for controller, folder in self.folders.items()}
        _write(self._own["memory"], self.files.memory_limit, memory + _HEADROOM)
        try:
            swap = 0 if self.files is _V2 else memory + _HEADROOM
            _write(self._own["memory"], self.files.swap_limit, swap)
        except OSError:
            pass  # a kernel that does not count swap
        _write(self._own["pids"], "pids.max", processes)
        distinct = {(os.fstat(fd).st_dev, os.fstat(fd).st_ino): fd for fd in self._own.values()}
        return [os.open("cgroup.procs", os.O_WRONLY, dir_fd=fd) for fd in distinct.values()]

    def _open_own(self, folder: int) -> int:
        return os.open(self.name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)

    def usage(self) -> Usage:
        """Return the resources used so far. A figure that the kernel does not provide is 0."""
        cpu = self._number(self._own.get("cpuacct"), self.files.cpu, "usage_usec")
        peak = self._number(self._own.get("memory"), self.files.memory_peak)
        kills = self._number(self._own.get("memory"), self.files.events, "oom_kill")
        return Usage(cpu / (1e6 if self.files is _V1 else 1e3), peak / (1 << 20), kills > 0)

    @staticmethod
    def _number(folder: int | None, name: str, key: str = "") -> int:
        try:
            words = _read(folder, name).split() if folder is not None else []
        except OSError:
            return 0
        if key in words:
            return int(words[words.index(key) + 1])
        return int(words[0]) if words and words[0].isdigit() else 0

    def remove(self) -> bool:
        """Remove the group. Return False if a process in it has not ended yet."""
        for fd in self._own.values():
            os.close(fd)
        self._own = {}
        done = True
        for folder in set(self.folders.values()):
            try:
                os.rmdir(self.name, dir_fd=folder)
            except FileNotFoundError:
                continue
            except OSError:
                done = False
        return done


class Groups:
    """The engine's groups, made before it leaves root and the file system. `available`: whether that succeeded."""

    def __init__(self) -> None:
        self.available = False
        self._folders: dict[str, int] = {}
        self._parents: dict[str, int] = {}
        self._files = _V1
        self._name = f"{_PREFIX}{os.getpid()}"
        self._left_over: list[Group] = []

    def acquire(self, owner: int) -> None:
        """Make the engine's own groups with this owner; `available` stays False if that is not possible."""
        try:
            mounts = _mounts()
            own = _own_groups()
            if all(name in mounts and name in own for name in _NEEDED):
                found = {name: mounts[name] + own[name] for name in (*_NEEDED, "cpuacct") if name in own}
                self._make(found, owner, _V1)
            elif "" in mounts and "" in own:
                self._make_unified(mounts[""] + own[""], owner)
        except OSError:
            self.release()

    def _make(self, folders: dict[str, str], owner: int, files: _Files) -> None:
        self._files = files
        for controller, path in folders.items():
            parent = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            self._parents[controller] = parent
            _sweep(parent)
            try:
                os.mkdir(self._name, dir_fd=parent)
            except FileExistsError:
                pass  # controllers that share one directory
            folder = os.open(self._name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=parent)
            self._folders[controller] = folder
            os.chown(self._name, owner, owner, dir_fd=parent)
            os.chown("cgroup.procs", owner, owner, dir_fd=folder)
        self.available = True

    def _make_unified(self, path: str, owner: int) -> None:
        """Version 2: a group with members cannot have limited children, so the engine moves into a child group."""
        with open(f"{path}/cgroup.controllers") as file:
            if not set(_NEEDED) <= set(file.read().split()):
                return
        enable = " ".join(f"+{name}" for name in _NEEDED)
        root = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _write(root, "cgroup.subtree_control", enable)
        finally:
            os.close(root)
        self._make(dict.fromkeys((*_NEEDED, "cpuacct"), path), owner, _V2)
        folder = self._folders["memory"]
        os.mkdir("engine", dir_fd=folder)
        _write(folder, "engine/cgroup.procs", os.getpid())
        _write(folder, "cgroup.subtree_control", enable)

    def group(self, session: int, memory: int, processes: int) -> tuple[Group | None, list[int]]:
        """Return a group for a run and the descriptors by which it joins; (None, []) if there are no groups."""
        if not self.available:
            return None, []
        self._left_over = [group for group in self._left_over if not group.remove()]
        group = Group(str(session), self._folders, self._files)
        try:
            return group, group.make(memory, processes)
        except OSError:
            group.remove()
            return None, []

    def done(self, group: Group) -> None:
        """Remove a run's group, now or once its processes have ended."""
        if not group.remove():
            self._left_over.append(group)

    def release(self) -> None:
        """Remove the engine's groups as far as it is allowed to; `sweep` removes the others."""
        self.available = False
        for group in self._left_over:
            group.remove()
        for controller, parent in self._parents.items():
            try:
                os.rmdir(self._name, dir_fd=parent)
            except OSError:
                pass
            for fd in (parent, self._folders.get(controller, -1)):
                if fd >= 0:
                    os.close(fd)
        self._parents, self._folders = {}, {}


BOX_CONTROLLERS = ("memory", "pids", "cpu")


def box_folders() -> dict[str, str]:
    """Return controller -> folder in which groups of boxes can be made. Raises OSError with what is missing."""
    mounts, own = _mounts(), _own_groups()
    if all(name in mounts and name in own for name in BOX_CONTROLLERS):
        return {name: mounts[name] + own[name] for name in BOX_CONTROLLERS}
    if "" in mounts and "" in own:
        path = mounts[""] + own[""]
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _write(folder, "cgroup.subtree_control", " ".join(f"+{name}" for name in BOX_CONTROLLERS))
        finally:
            os.close(folder)
        return dict.fromkeys(BOX_CONTROLLERS, path)
    raise OSError("no control groups for memory, pids and cpu are mounted")


def make_box_group(name: str, paths: dict[str, str], memory: int, processes: int, cpus: float) -> list[int]:
    """Make the group of a box with all of its limits, and return descriptors by which a process joins it."""
    version_1 = len(set(paths.values())) > 1
    folders = {key: os.open(path, os.O_RDONLY | os.O_DIRECTORY) for key, path in paths.items()}
    try:
        joining = Group(name, folders, _V1 if version_1 else _V2).make(memory, processes)
        quota = int(cpus * _CPU_PERIOD_US)
        if version_1:
            _write(folders["cpu"], f"{name}/cpu.cfs_period_us", _CPU_PERIOD_US)
            _write(folders["cpu"], f"{name}/cpu.cfs_quota_us", quota)
        else:
            _write(folders["cpu"], f"{name}/cpu.max", f"{quota} {_CPU_PERIOD_US}")
    finally:
        for folder in folders.values():
            os.close(folder)
    return joining


def box_limits_reached(name: str, paths: dict[str, str]) -> list[str]:
    """Return which limits the group of a box has reached: `memory`, `processes`."""
    version_1 = len(set(paths.values())) > 1
    events = {
        "memory": ("memory", (_V1 if version_1 else _V2).events, "oom_kill"),
        "processes": ("pids", "pids.events", "max"),
    }
    reached = []
    for limit, (controller, file, key) in events.items():
        with suppress(OSError), open(f"{paths[controller]}/{name}/{file}") as opened:
            words = opened.read().split()
            if key in words and int(words[words.index(key) + 1]):
                reached.append(limit)
    return reached


def end_box_group(name: str, paths: dict[str, str]) -> bool:
    """Kill the processes of a box's group and remove it. Return False if some have not ended yet."""
    done = True
    for path in set(paths.values()):
        folder = f"{path}/{name}"
        try:
            with open(f"{folder}/cgroup.procs") as file:
                members = [int(word) for word in file.read().split()]
            for pid in members:
                _kill_member(pid, name)
            os.rmdir(folder)
        except FileNotFoundError:
            continue
        except OSError:
            done = False
    return done


def _kill_member(pid: int, group: str) -> None:
    """Kill a process if it is still in the group: its number may belong to another one by now."""
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return
    try:
        with suppress(OSError), open(f"/proc/{pid}/cgroup") as file:  # it may have ended
            if f"/{group}\n" in file.read():
                signal.pidfd_send_signal(process, signal.SIGKILL)
    finally:
        os.close(process)


def sweep(engine: int) -> None:
    """As root, when the engine with this process id has ended: remove its groups and those of other ended engines."""
    try:
        mounts, own = _mounts(), _own_groups()
        for path in {mounts[name] + own[name] for name in (*_NEEDED, "cpuacct", "") if name in mounts and name in own}:
            if os.path.isdir(f"{path}/{_PREFIX}{engine}"):
                parent = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    _sweep(parent)
                finally:
                    os.close(parent)
    except OSError:
        pass  # there are no control groups


def _mounts() -> dict[str, str]:
    """Return controller -> mount point of its hierarchy; "" for version 2."""
    found: dict[str, str] = {}
    with open("/proc/self/mountinfo") as file:
        for line in file:
            before, _, after = line.partition(" - ")
            kind, _, options = after.split()
            point = before.split()[4]
            if kind == "cgroup2":
                found[""] = point
            elif kind == "cgroup":
                found |= dict.fromkeys(options.split(","), point)
    return found


def _own_groups() -> dict[str, str]:
    """Return controller -> this process's group in its hierarchy; "" for version 2."""
    found: dict[str, str] = {}
    with open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            found.update(dict.fromkeys(controllers.split(","), path.rstrip("/")))
    return found


def _sweep(parent: int) -> None:
    """Remove the groups of engines that have ended."""
    for name in _named(os.listdir(parent)):
        if os.path.exists(f"/proc/{name[len(_PREFIX) :]}"):
            continue
        try:
            folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=parent)
        except OSError:
            continue
        try:
            inside = [child for child in os.listdir(folder) if "." not in child and child != "tasks"]
            for child in inside:
                try:
                    os.rmdir(child, dir_fd=folder)
                except NotADirectoryError:
                    continue
            os.rmdir(name, dir_fd=parent)
        except OSError:
            continue
        finally:
            os.close(folder)


def _named(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(_PREFIX) and name[len(_PREFIX) :].isdigit()]


def _write(folder: int, name: str, value: int | str) -> None:
    fd = os.open(name, os.O_WRONLY, dir_fd=folder)
    try:
        os.write(fd, str(value).encode())
    finally:
        os.close(fd)


def _read(folder: int, name: str) -> str:
    fd = os.open(name, os.O_RDONLY, dir_fd=folder)
    try:
        return os.read(fd, 65536).decode()
    finally:
        os.close(fd)
