"""Scripts of an imported task: the one that runs its tests in a scoring box, and the one of its gold answer."""

import base64
import gzip
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from hub.benchmarks.harbor.installs import STAND_INS
from hub.benchmarks.harbor.task_files import files_below, files_in
from hub.harnesses.steps.workspace_files import WINDOWS_LINE_ENDS, has_windows_line_ends
from sandbox.workspaces.builds import archive

_MAX_SOLUTION = 60_000  # bytes of a packed solution; a command has at most 100,000
_VERIFY = """#!/bin/bash
mkdir -p /verify/logs
cd "$WORKDIR" || exit 1
"""
# In Harbor, root owns the files and runs the tests, which may change them. Here root may not change files of others.
_TAKE_OVER = """as-agent python3 -I -c '
import sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as tar:
    tar.add(".")
' > /verify/work.tar && as-agent python3 -I -c '
import os, shutil
for entry in os.scandir("."):
    if not entry.is_dir(follow_symlinks=False):
        os.unlink(entry.path)
        continue
    for folder, names, _ in os.walk(entry.path):
        for name in names:
            if not os.path.islink(os.path.join(folder, name)):
                os.chmod(os.path.join(folder, name), 0o700)
        os.chmod(folder, 0o700)
    shutil.rmtree(entry.path)
os.chmod(".", 0o777)
' && python3 -I -c '
import tarfile
with tarfile.open("/verify/work.tar") as tar:
    members = [member for member in tar if member.name != "."]
    for member in members:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
    trusted = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
    tar.extractall(".", members, **trusted)
'
rm -f /verify/work.tar
"""
_RUN_TESTS = """bash /tests/test.sh
code=$?
for name in json txt; do
    if [ -s /logs/verifier/reward.$name ]; then cp /logs/verifier/reward.$name "$REWARD"; exit 0; fi
done
echo "tests/test.sh wrote no reward file"
exit $code
"""
_SOLVE = """# The files of solution/, and a call of its solve.sh.
mkdir -p /tmp/solution
python3 -c 'import base64, io, sys, tarfile
tarfile.open(fileobj=io.BytesIO(base64.b64decode(sys.argv[1]))).extractall("/tmp/solution")' {packed}
exec bash /solution/solve.sh
"""


def verify_script(variables: Mapping[str, str], *, as_agent: bool, installs: bool) -> str:
    """Return the script that runs a task's tests in a scoring box.

    as_agent: the tests call `as-agent` for what the agent wrote. installs: they install packages.
    """
    begin = _VERIFY if as_agent else _VERIFY + _TAKE_OVER
    return begin + (STAND_INS if installs else "") + _exports(variables) + _RUN_TESTS


def solution_script(folder: Path, variables: Mapping[str, str]) -> tuple[str, str]:
    """Return the script of the gold answer, or "" and the reason why there is none."""
    script = folder / "solution" / "solve.sh"
    if not script.is_file():
        return "", "it has no solution/solve.sh"
    text = script.read_text(encoding="utf-8", errors="surrogateescape")
    files = list(files_in(folder / "solution"))
    if len(files) == 1 and not re.search(r"/solution\b|\$0|BASH_SOURCE", text):
        return _exports(variables) + text, ""
    if has_windows_line_ends(script.read_bytes()):
        return "", f"solution/solve.sh {WINDOWS_LINE_ENDS}"
    content = {path: file.read_bytes() for path, file in files_below(folder / "solution").items()}
    packed = gzip.compress(archive(content).getvalue(), mtime=0)
    if len(packed) > _MAX_SOLUTION:
        return "", f"the files of its solution have more than {_MAX_SOLUTION:,} bytes, packed"
    return _exports(variables) + _SOLVE.format(packed=base64.b64encode(packed).decode()), ""


def _exports(variables: Mapping[str, str]) -> str:
    return "".join(f"export {key}={shlex.quote(value)}\n" for key, value in variables.items())
