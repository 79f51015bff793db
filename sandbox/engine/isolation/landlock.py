"""File access of a run, restricted by the Landlock security module to what its rules allow."""

import ctypes
import os
from collections.abc import Iterable

from . import syscalls

_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV


class _RulesetAttributes(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def abi() -> int:
    """Return the version of Landlock that the kernel offers, 0 for none."""
    try:
        return syscalls.call("landlock_create_ruleset", None, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def _handled(version: int) -> int:
    """Return every file access right that this version can deny."""
    bits = (1 << 13) - 1
    for needed, bit in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        bits |= bit if version >= needed else 0
    return bits


def ruleset(version: int, readable: Iterable[str], writable: Iterable[str], devices: Iterable[str]) -> int:
    """Return a descriptor of a new ruleset: trees to read, trees to write, device files to read and write.

    If the kernel can, it also denies TCP, and signals and abstract sockets beyond the run. Raises OSError.
    """
    files = _handled(version)
    attributes = _RulesetAttributes(files, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    fd = syscalls.call("landlock_create_ruleset", ctypes.byref(attributes), size, 0)
    write = files & ~(_MAKE_CHAR | _MAKE_BLOCK | _EXECUTE | _IOCTL_DEV) | _READ
    for paths, rights in ((readable, _READ), (writable, write), (devices, _READ_FILE | _WRITE_FILE)):
        for path in paths:
            _allow(fd, path, rights & files)
    os.set_inheritable(fd, False)
    return fd


def _allow(ruleset_fd: int, path: str, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it does not exist
    try:
        if not os.path.isdir(path):
            rights &= _ON_FILES
        rule = _PathBeneath(rights, parent)
        syscalls.call("landlock_add_rule", ruleset_fd, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(parent)


def restricting(ruleset_fd: int) -> syscalls.Prepared:
    """Return the call that applies the ruleset to the calling thread, irrevocably. Needs no_new_privs."""
    return syscalls.Prepared("landlock_restrict_self", ruleset_fd, 0)
