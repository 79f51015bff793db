"""Tests of output files: written completely, together or not at all, and never replaced without --force."""

import errno
import os
from pathlib import Path

import pytest

from hub.common.output.files import CannotWrite, Outputs, new_folder


def put(path: Path, text: str = "new", *, force: bool = False) -> Outputs:
    with Outputs(force=force) as outputs:
        outputs.file(path).write_text(text)
    return outputs


def test_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with Outputs() as outputs:
        outputs.file(out).write_text("new")
        assert not out.exists()
    assert (out.read_text(), outputs.written, os.listdir(tmp_path)) == ("new", [out], ["out.jsonl"])


def test_existing_file_is_kept_without_force(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("old")
    with pytest.raises(CannotWrite, match=r"out.jsonl exists already; --force replaces it\."):
        put(out)
    assert out.read_text() == "old"
    put(out, force=True)
    assert (out.read_text(), os.listdir(tmp_path)) == ("new", ["out.jsonl"])


def test_one_file_cannot_have_two_contents(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(CannotWrite, match="out is named twice"), Outputs(force=True) as outputs:
        outputs.file(out).write_text("html")
        outputs.file(tmp_path / "." / ".." / tmp_path.name / "out").write_text("markdown")
    assert os.listdir(tmp_path) == []


def test_file_created_meanwhile_is_kept_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="second exists already"), Outputs() as outputs:
        outputs.file(tmp_path / "first").write_text("new")
        outputs.file(tmp_path / "second").write_text("new")
        (tmp_path / "second").write_text("theirs")
    assert os.listdir(tmp_path) == ["second"]
    assert (tmp_path / "second").read_text() == "theirs"


def test_no_file_is_created_after_an_error_or_without_content(tmp_path: Path) -> None:
    with pytest.raises(KeyError), Outputs() as outputs:
        outputs.folder(tmp_path / "made")
        outputs.file(tmp_path / "made" / "out").write_text("new")
        raise KeyError("broken")
    with Outputs() as outputs:
        outputs.file(tmp_path / "out")
    assert (os.listdir(tmp_path), outputs.written) == ([], [])


def test_folder_is_created_but_not_its_parents(tmp_path: Path) -> None:
    with Outputs() as outputs:
        outputs.file(outputs.folder(tmp_path / "out") / "a").write_text("new")
    assert (tmp_path / "out" / "a").read_text() == "new"
    with pytest.raises(CannotWrite, match=f"there is no folder {tmp_path / 'no'}"), Outputs() as outputs:
        outputs.folder(tmp_path / "no" / "folder")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("folder", "is a folder; name a file in it."),
        ("missing/out", "there is no folder"),
        ("file/out", "is not a folder"),
    ],
)
def test_error_for_a_path_that_cannot_be_written(tmp_path: Path, place: str, said: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite, match=said):
        put(tmp_path / place, force=True)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_error_for_a_folder_that_takes_no_new_file() -> None:
    with pytest.raises(CannotWrite, match=r"/proc/out cannot be written: no file can be created in /proc\."):
        put(Path("/proc/out"))


def test_file_as_folder_and_dash_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite, match="is a file; name a folder"), Outputs() as outputs:
        outputs.folder(tmp_path / "file")
    with pytest.raises(CannotWrite, match="Name a file"):
        put(Path("-"))


def test_error_for_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="out cannot be written: no space left on device"), Outputs() as outputs:
        outputs.file(tmp_path / "out")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_pipe_is_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    put(pipe)
    assert os.read(reader, 10) == b"new"
    os.close(reader)


def test_symbolic_link_is_kept_when_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    put(tmp_path / "link", force=True)
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "real").read_text()) == (True, "new")


def test_new_folder_is_removed_if_its_files_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "a" / "out"
    with pytest.raises(CannotWrite, match="out cannot be written: no space left on device"), new_folder(path):
        (path / "file").touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(CannotWrite, match="out cannot be written: permission denied"), new_folder(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path / "file"))
    with pytest.raises(FileNotFoundError), new_folder(path):
        (tmp_path / "missing").read_text()
    assert not path.exists()


def test_new_folder_must_not_exist_and_is_named_if_it_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite, match="exists already; name a new folder"), new_folder(tmp_path):
        pass
    with pytest.raises(CannotWrite, match="out cannot be created: not a directory"), new_folder(tmp_path / "file/out"):
        pass
    with new_folder(tmp_path / "out") as made:
        (made / "file").touch()
    assert os.listdir(tmp_path / "out") == ["file"]
