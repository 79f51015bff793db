"""Scripts of a bundle that are named by a template, such as `setup/{{ id }}.sh`: their folder is code of the bundle."""

import codecs
from collections.abc import Mapping

from hub.common.problems import Problem

WINDOWS_LINE_ENDS = "has line ends of Windows (CRLF), with which Linux cannot run it; save it with those of Unix (LF)"


def code_of(path: object) -> list[str]:
    """Return *path* as code of a bundle; for a template the folder that its files are in, with a final slash."""
    if not isinstance(path, str) or not path:
        return []
    fixed, template, _ = path.partition("{{")
    folder = fixed.rpartition("/")[0]
    if template:
        return [f"{folder}/"] if folder else []  # reported by `unknown_folder`
    return [path]


def folder_of(path: object) -> list[str]:
    """Return the folder *path* as code of a bundle, with a final slash; for a template the folder that it is in."""
    found = code_of(path)
    return [f"{name.rstrip('/')}/" for name in found]


def unknown_folder(path: object, key: str) -> list[Problem]:
    """Return the problem of a template that does not begin with a folder."""
    if isinstance(path, str) and "{{" in path and "/" not in path.partition("{{")[0]:
        return [Problem(f"{path!r} must begin with a folder, such as {key}/{{{{ id }}}}.sh", key)]
    return []


def script_problem(path: str, files: Mapping[str, bytes]) -> str:
    """Return why the script *path* of a bundle cannot be run; "" if it can."""
    if path not in files:
        return f"the bundle has no file {path!r}"
    if files[path].startswith(codecs.BOM_UTF8):
        return f"{path!r} begins with a byte order mark, which hides its first line; save it as UTF-8 without one"
    return f"{path!r} {WINDOWS_LINE_ENDS}" if has_windows_line_ends(files[path]) else ""


def command_of(path: str, content: bytes) -> str:
    """Return the shell command that runs the script at *path*: by the program that its first line names, or by sh."""
    return path if content.startswith(b"#!") else f"sh {path}"


def missing_interpreter(path: str, content: bytes, output: str) -> str:
    """Return what is wrong if bash could not run the script at *path* because the image lacks its interpreter, or "".

    *output* is that of the script. The message of bash names the script, which exists, and not the interpreter.
    """
    message = f"{path}: cannot execute: required file not found"
    if not content.startswith(b"#!") or not output.rstrip().endswith(message):
        return ""
    named = content[2:].partition(b"\n")[0].decode("utf-8", "replace").split()
    return f"the image has no {named[0]!r}, which the first line of the script names." if named else ""


def is_shell_script(path: str, content: bytes) -> bool:
    """Return whether the first line of a file, or its name, says that a shell or its interpreter runs it."""
    return path.endswith((".sh", ".bash")) or (content.startswith(b"#!") and not path.endswith(".py"))


def has_windows_line_ends(script: bytes) -> bool:
    """Return whether the first line ends with CRLF, which makes its last word or its interpreter another name."""
    return script.partition(b"\n")[0].endswith(b"\r")
