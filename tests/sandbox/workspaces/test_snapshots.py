"""Snapshots of boxes: what a new box has, and what hostile files and archives cannot do."""

import gzip
import io
import os
import tarfile
from collections.abc import Callable, Iterator
from hashlib import sha256

import pytest

from sandbox.workspaces.base import Handle, SnapshotFacts, TooManyProcesses, WorkspaceEngine, WorkspaceError
from tests.sandbox.workspaces.test_boxes import run, spec

pytestmark = pytest.mark.docker


@pytest.fixture
def box(engine: WorkspaceEngine) -> Iterator[Handle]:
    handle = engine.open(spec())
    yield handle
    engine.close(handle)


def take(engine: WorkspaceEngine, box: Handle, max_mb: int = 8) -> tuple[SnapshotFacts, io.BytesIO]:
    archive = io.BytesIO()
    facts = engine.snapshot(box, "/app", archive, max_mb)
    assert (facts.digest, facts.size) == (sha256(archive.getvalue()).hexdigest(), len(archive.getvalue()))
    archive.seek(0)
    return facts, archive


def in_copy(engine: WorkspaceEngine, archive: io.BytesIO, command: str) -> str:
    """Return the output of *command* in a box with the files of *archive*."""
    archive.seek(0)
    copy = engine.open_snapshot(spec(), archive, 8)
    try:
        return run(engine, copy, command).output
    finally:
        engine.close(copy)


LISTING = r"""
cd /app; find . /tmp /dev/shm -printf '%p %y %m %U %G %s %n %l\n' | sort | grep -v '^/tmp d \|^/dev/shm d '
stat -c '%n %Y' . a a/b link fifo | sort; cat a/b a/secret 2>&1; chmod 400 a/secret; cat a/secret
"""
FILES = r"""
umask 022; mkdir -p a/empty /tmp/deep; printf one > a/b; ln a/b a/same; ln -s /etc/passwd link; ln -s nowhere/x broken
printf hidden > a/secret; chmod 0 a/secret; mkdir locked; echo x > locked/file; chmod 0 locked; mkfifo -m 640 fifo
printf '#!/bin/sh\n' > run; chmod 4751 run; chmod 2770 a/empty; printf t > /tmp/deep/t; printf s > /dev/shm/s
printf 'odd\n' > "$(printf 'new\nline')"; printf x > "$(printf '\377')"; chmod 750 /app
touch -d '2001-02-03 04:05:06' a/b a .; touch -h -d '2001-02-03' link
"""


def test_files_links_modes_owners_and_times_are_kept(engine: WorkspaceEngine, box: Handle) -> None:
    assert run(engine, box, FILES).output == ""
    facts, archive = take(engine, box)
    assert (facts.processes, list(facts.left_out)) == (0, [])
    before = run(engine, box, LISTING).output
    assert before.count("\n") > 20
    assert "./a/b f 644 1000 1000 3 2 " in before
    assert "./link l 777 1000 1000 11 1 /etc/passwd" in before
    assert "./run f 4751 1000 1000" in before
    assert in_copy(engine, archive, LISTING) == before


def test_equal_folders_have_equal_archives_and_one_change_another(engine: WorkspaceEngine, box: Handle) -> None:
    run(engine, box, FILES)
    first, second = take(engine, box)[0], take(engine, box)[0]
    assert first.digest == second.digest
    run(engine, box, "printf two > a/b")
    assert take(engine, box)[0].digest != first.digest


def test_files_larger_than_one_part_and_sparse_files_are_kept(engine: WorkspaceEngine, box: Handle) -> None:
    run(engine, box, "head -c 3000001 /dev/urandom > noise; truncate -s 5M sparse; printf end >> sparse")
    digests = "sha256sum noise sparse; du -k sparse | cut -f 1"
    before = run(engine, box, digests).output
    assert int(before.splitlines()[-1]) <= 64
    assert in_copy(engine, take(engine, box)[1], digests) == before


def test_background_processes_wait_during_a_snapshot_and_go_on(engine: WorkspaceEngine, box: Handle) -> None:
    run(engine, box, "(while :; do date +%s%N > new; mv new tick; sleep 0.05; done) & echo started")
    facts, archive = take(engine, box)
    assert facts.processes >= 1
    first = run(engine, box, "cat tick").output
    assert run(engine, box, "sleep 0.5; cat tick").output != first
    assert in_copy(engine, archive, "cat tick").strip() != ""


COUNT = """
import itertools, os
for number in itertools.count():
    for name in ("first", "second"):
        with open("new", "w") as file:
            file.write(str(number))
        os.replace("new", name)
"""


def test_snapshot_has_one_state_of_all_files_while_a_process_changes_them(engine: WorkspaceEngine, box: Handle) -> None:
    engine.write(box, {"count.py": COUNT.encode()})
    run(engine, box, "head -c 6000000 /dev/urandom > middle; python3 count.py & while [ ! -e second ]; do :; done")
    first, second = in_copy(engine, take(engine, box)[1], "cat first; echo; cat second").split()
    assert int(first) - int(second) in (0, 1)


def test_sockets_are_left_out_and_named(engine: WorkspaceEngine, box: Handle) -> None:
    run(engine, box, "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('server')\"; echo x > kept")
    facts, archive = take(engine, box)
    assert list(facts.left_out) == ["'/app/server'"]
    assert in_copy(engine, archive, "ls") == "kept\n"


def test_folders_with_too_many_bytes_are_refused_and_the_box_goes_on(engine: WorkspaceEngine, box: Handle) -> None:
    run(engine, box, "sleep 300 & head -c 5000000 /dev/zero > a; head -c 5000000 /dev/zero > b")
    with pytest.raises(WorkspaceError, match=r"the files have more than 8 MB$"):
        take(engine, box)
    run(engine, box, "rm a; truncate -s 100G huge")
    with pytest.raises(WorkspaceError, match=r"more than 8 MB; '/app/huge' alone has 102400.0 MB$"):
        take(engine, box)
    run(engine, box, "rm huge")
    assert take(engine, box)[0].processes >= 1


FILL = """
import os, time
while True:
    try:
        if os.fork() == 0:
            time.sleep(300)
            os._exit(0)
    except OSError:
        open("full", "w").close()
        time.sleep(0.01)
"""


def test_snapshot_of_a_full_box_is_refused_and_ends_none_of_its_processes(engine: WorkspaceEngine, box: Handle) -> None:
    engine.write(box, {"fill.py": FILL.encode()})
    run(engine, box, "python3 fill.py & while [ ! -e full ]; do :; done")
    with pytest.raises(WorkspaceError, match="no room for another process"):
        for _ in range(100):
            take(engine, box)
    with pytest.raises(TooManyProcesses):  # they are still there
        run(engine, box, "true")


def test_deep_folders_are_kept_or_refused(engine: WorkspaceEngine, box: Handle) -> None:
    deep = "import os\nfor _ in range({}): os.mkdir('{}'); os.chdir('{}')\nopen('file', 'w').write('deep')"
    run(engine, box, f'python3 -c "{deep.format(300, *["d" * 9] * 2)}"')
    assert in_copy(engine, take(engine, box)[1], "cat $(find . -name file)") == "deep"
    run(engine, box, f'python3 -c "{deep.format(2000, *["e" * 9] * 2)}"')
    with pytest.raises(WorkspaceError, match="File name too long"):
        take(engine, box)


# ---- archives that the packer did not write --------------------------------------------------------------------------


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, info.mode = kind, link, size, 0o755
    return info


def forged(*members: tarfile.TarInfo, content: Callable[[int], bytes] = bytes) -> io.BytesIO:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for info in members:
            archive.addfile(info, io.BytesIO(content(info.size)))
    return io.BytesIO(gzip.compress(plain.getvalue()))


ROOT = [member("0", tarfile.DIRTYPE), member("1", tarfile.DIRTYPE)]


def test_a_plain_forged_archive_is_unpacked(engine: WorkspaceEngine) -> None:
    assert in_copy(engine, forged(*ROOT, member("0/a", size=3)), "ls") == "a\n"


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([member("../a")], "outside of its folders"),
        ([member("/etc/a")], "outside of its folders"),
        ([member("7/a")], "outside of its folders"),
        ([*ROOT, member("0/../../etc/a")], "outside of its folders"),
        ([*ROOT, member("0/l", tarfile.SYMTYPE, "/tmp"), member("0/l/a")], "whose folder is not in it"),
        ([*ROOT, member("0/l", tarfile.SYMTYPE, "/tmp/a"), member("0/l", size=1)], "File exists"),
        ([*ROOT, member("0/l", tarfile.LNKTYPE, "/etc/passwd")], "hard link to '/etc/passwd', which is not in it"),
        ([*ROOT, member("0/l", tarfile.LNKTYPE, "0/../../etc/passwd")], "which is not in it"),
        (
            [*ROOT, member("0/s", tarfile.SYMTYPE, "/etc/passwd"), member("0/l", tarfile.LNKTYPE, "0/s")],
            "which is not in it",
        ),
        ([*ROOT, member("0/d", tarfile.CHRTYPE)], "not a file, folder or link"),
        ([*ROOT, member("0/d", tarfile.BLKTYPE)], "not a file, folder or link"),
        ([*ROOT, member("0/big", size=9 * 2**20)], "more than 8 MB"),
    ],
)
def test_hostile_archive_is_refused(engine: WorkspaceEngine, members: list[tarfile.TarInfo], reason: str) -> None:
    with pytest.raises(WorkspaceError, match=reason):
        engine.open_snapshot(spec(), forged(*members), 8)


def test_archive_that_fails_before_its_last_part_is_refused_with_the_reason(engine: WorkspaceEngine) -> None:
    noise = [member(f"0/{number}", size=1_000_000) for number in range(4)]
    archive = forged(*ROOT, noise[0], member("../a"), *noise[1:], content=os.urandom)
    with pytest.raises(WorkspaceError, match="outside of its folders"):
        engine.open_snapshot(spec(), archive, 8)


@pytest.mark.parametrize(
    "change",
    [lambda data: data[: len(data) // 2], lambda data: b"no archive" * 9, lambda data: data[:20] + b"xx" + data[22:]],
    ids=["cut", "no-archive", "changed"],
)
def test_damaged_archive_is_refused(engine: WorkspaceEngine, change: Callable[[bytes], bytes]) -> None:
    whole = forged(*ROOT, member("0/a", size=100_000)).getvalue()
    with pytest.raises(WorkspaceError, match="the snapshot"):
        engine.open_snapshot(spec(), io.BytesIO(change(whole)), 8)
