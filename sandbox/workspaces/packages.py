"""Check whether the Python of a box can import the packages that an environment names."""

import json
import shlex
from collections.abc import Sequence

from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.base import (
    PACKAGES,
    BoxSpec,
    CommandResult,
    Handle,
    PackagesUnsuitable,
    WorkspaceEngine,
)

_IMPORT_S = 120.0
_suitable: set[tuple[str, str, tuple[str, ...]]] = set()  # digests of image and packages, and the names
# Prints the Python of the box, the extension of its compiled modules and of those of the packages, and what fails.
_PROGRAM = """
import importlib, importlib.machinery, json, os, sys
folder, *names = sys.argv[1:]
compiled = {file.partition(".")[2] for name in names for _, _, files in os.walk(os.path.join(folder, name))
            for file in files if file.endswith(".so")}
own, failed = importlib.machinery.EXTENSION_SUFFIXES, {}
if all("." + extension in own for extension in compiled):
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            failed[name] = (type(error).__name__ + ": " + str(error).strip())[:200]
found = {"python": "%d.%d" % sys.version_info[:2], "own": own[0][1:-3], "failed": failed,
         "needed": sorted(extension[:-3] for extension in compiled if "." + extension not in own)[:1]}
print("\\n" + json.dumps(found))
"""


def check_packages(engine: WorkspaceEngine, box: Handle, image: str, packages: str, names: Sequence[str]) -> None:
    """Raise PackagesUnsuitable if *names* cannot be imported in a new box of *image* that has *packages*.

    Each image is checked once in this process.
    """
    key = (box.image, packages, tuple(names))
    if key in _suitable:
        return
    # Not in the work folder, whose files would be imported first.
    command = f"cd / && exec python3 -c {shlex.quote(_PROGRAM)} {PACKAGES} {shlex.join(names)}"
    if problem := _problem(engine.execute(box, command, _IMPORT_S), names):
        raise PackagesUnsuitable(
            f"The image {image} cannot be used with `packages`: {problem}. Use an image with the Python of the "
            "packages, or install them in the image and leave out `packages`."
        )
    _suitable.add(key)


def check_image(engine: WorkspaceEngine, image: str, names: Sequence[str]) -> None:
    """Raise SandboxUnavailable if boxes of *image* cannot import *names*, after a trial in a box."""
    packages = engine.find_packages()
    box = engine.open(BoxSpec(image=image, packages=packages))
    try:
        check_packages(engine, box, image, packages, names)
    except PackagesUnsuitable as error:
        raise SandboxUnavailable(str(error)) from None
    finally:
        engine.close(box)


def _problem(result: CommandResult, names: Sequence[str]) -> str:
    try:
        found = json.loads(result.output.strip().splitlines()[-1])
        python, own, needed, failed = found["python"], found["own"], found["needed"], found["failed"]
    except (IndexError, ValueError, KeyError, TypeError):
        return f"its python3 cannot check them: {result.output.strip()[-300:] or f'exit code {result.exit_code}'}"
    if needed:
        return f"it has Python {python} ({own}), and {', '.join(names)} are for {_describe(needed[0])}"
    return "; ".join(f"its Python {python} ({own}) cannot import {name}: {why}" for name, why in failed.items())


def _describe(extension: str) -> str:
    """Return `cpython-311-x86_64-linux-gnu` with the version of its Python."""
    kind, _, rest = extension.partition("-")
    digits = rest.partition("-")[0]
    return f"Python {digits[0]}.{digits[1:]} ({extension})" if kind == "cpython" and digits[1:] else extension
