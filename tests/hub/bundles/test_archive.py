"""Archives of bundles: limits, names, damaged and malicious .zip files, reproducible writing."""

import hashlib
import io
import random
import re
import tracemalloc
import zipfile

import pytest

from hub.bundles.archive import MAX_ENTRIES, Archive, ArchiveError, FileInfo, write_archive
from tests.hub.archives import GOOD, device, link, named, packed, patched_directory, with_entries


def opened(data: bytes) -> Archive:
    return Archive(io.BytesIO(data))


def refusal(data: bytes) -> str:
    with pytest.raises(ArchiveError) as caught:
        opened(data)
    return str(caught.value)


def test_valid_archive_lists_files_with_hashes():
    archive = opened(packed())
    assert sorted(archive.files) == sorted(GOOD)
    for path, content in GOOD.items():
        assert archive.files[path].size == len(content)
        assert archive.open(path).read() == content


def test_folders_and_by_products_of_tools_are_left_out():
    extra = {"data/": b"", "__MACOSX/._a": b"x", "data/.DS_Store": b"x", "__pycache__/a.pyc": b"x", ".git/HEAD": b"x"}
    assert sorted(opened(packed({**GOOD, **extra})).files) == sorted(GOOD)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("/etc/passwd", "absolute"),
        ("C:/windows", "absolute"),
        ("../outside", "leaves the bundle"),
        ("data/../../outside", "leaves the bundle"),
        ("data//a", "empty parts"),
        ("./a", "leaves the bundle"),
        ("data\\a", "backslash"),
        ("a\nb", "not printable"),
        ("a" * 500, "longer than"),
        ("CASES.jsonl", "twice"),
        ("cases.jsonl", "two entries have this name"),
        ("data/a.txt/b", "also the name of a file"),
    ],
)
def test_names_that_leave_the_bundle_or_collide_are_rejected(name, sentence):
    assert re.search(sentence, refusal(named(name)))


def test_backslashes_between_folders_are_explained():
    assert "pack again with another program" in refusal(named("data\\cases.jsonl"))


def test_names_that_differ_in_how_accents_are_encoded_collide():
    data = packed({**GOOD, "caf\u00e9": b"1", "cafe\u0301": b"2"})
    assert "accents" in refusal(data)


def test_names_in_an_unknown_encoding_are_rejected():
    data = packed({**GOOD, "caf\u00e9": b"1"})
    # Take the UTF-8 flag (0x800 at offset 6 and 8) out of both headers of the entry.
    at = data.index("caf\u00e9".encode()) - 30
    last = data.rindex("caf\u00e9".encode()) - 46
    changed = bytearray(data)
    changed[at + 7] &= ~0x08
    changed[last + 9] &= ~0x08
    assert "not marked as UTF-8" in refusal(bytes(changed))


def test_links_and_devices_are_rejected():
    assert "link or a device" in refusal(link())
    assert "link or a device" in refusal(device())


def test_encrypted_entry_is_rejected():
    assert "encrypted" in refusal(patched_directory(packed(), 8, "<H", 1))


def test_method_other_than_deflate_is_rejected():
    info = zipfile.ZipInfo("a")
    info.compress_type = zipfile.ZIP_LZMA
    assert "another method" in refusal(with_entries((info, b"x" * 100)))


def test_too_many_entries_are_rejected():
    assert "10,000 entries" in refusal(packed({f"f{i}": b"" for i in range(MAX_ENTRIES + 1)}, stored=True))


def test_zip_bomb_is_rejected_by_its_ratio_before_unpacking():
    data = packed({**GOOD, "bomb": bytes(50_000_000)})
    tracemalloc.start()
    assert "200 times its size" in refusal(data)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_more_than_512_mib_in_the_directory_is_rejected():
    data = patched_directory(packed(), 24, "<I", 600 * 1024 * 1024)
    assert "unpacks to" in refusal(data)


def test_entry_larger_than_announced_is_rejected():
    real = bytes(random.Random(1).randbytes(5000))
    data = packed({**GOOD, "large": real})
    lying = patched_directory(data, 24, "<I", 100, entry=3)
    assert "does not match its header" in refusal(lying)


def test_entry_with_another_checksum_is_rejected():
    assert "does not match its header" in refusal(patched_directory(packed(), 16, "<I", 12345))


def test_entries_that_share_their_bytes_are_rejected():
    data = packed({"environment.yaml": b"spec: 1\n", "copy0000000.yaml": b"spec: 1\n"})
    assert "overlaps another entry" in refusal(patched_directory(data, 42, "<I", 0, entry=1))


def test_data_before_the_archive_is_rejected():
    assert "other data precedes it" in refusal(b"#!/bin/sh\n" + packed())


@pytest.mark.parametrize("data", [b"", b"PK", b"not an archive at all", packed()[:-30], packed()[:40]])
def test_file_that_is_not_a_zip_is_rejected(data):
    assert refusal(data)


def test_archive_is_written_reproducibly_and_can_be_read():
    contents = {"b.txt": b"two" * 1000, "a.txt": b"one", "zeros": bytes(3_000_000), "caf\u00e9": b"x"}
    written = []
    for names in (sorted(contents), sorted(contents, reverse=True)):
        files = {name: FileInfo(len(contents[name]), "") for name in names}
        out = io.BytesIO()
        write_archive(out, files, lambda path: io.BytesIO(contents[path]))
        written.append(out.getvalue())
    assert written[0] == written[1]
    archive = opened(written[0])  # the zeros, which deflate would shrink a thousandfold, are taken back too
    assert {path: archive.open(path).read() for path in archive.files} == contents


def mutated(good: bytes, rng: random.Random) -> bytes:
    """*good* with bytes flipped, cut, doubled or spliced, often in the headers, sometimes with checksums put right."""
    data = bytearray(good)
    marks = [i for i in range(len(good) - 4) if good[i : i + 2] == b"PK"]
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.choice(marks) + rng.randrange(60) if rng.random() < 0.7 else rng.randrange(len(data))
        at = min(at, len(data) - 1)
        action = rng.randrange(6)
        if action == 0:
            data[at] = rng.randrange(256)
        elif action == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif action == 2:
            data[at : at + 4] = rng.choice((b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\1\0\0\0"))
        elif action == 3:
            del data[at : at + rng.randrange(1, 40)]
        elif action == 4:
            data[at:at] = data[max(0, at - 30) : at]
        else:
            data[at:at] = rng.randbytes(rng.randrange(1, 20))
        if len(data) < 8:
            break
    return bytes(data)


def test_mutated_archives_are_rejected_or_read_consistently():
    rng = random.Random(7)
    good = packed({**GOOD, "caf\u00e9.txt": rng.randbytes(300), "top.py": b"print(1)\n" * 20})
    refused = 0
    for _ in range(10_000):
        data = mutated(good, rng)
        try:
            archive = opened(data)
        except ArchiveError as error:
            refused += 1
            assert str(error).endswith((".", "!", "?"))
            continue
        for path, info in archive.files.items():
            content = archive.open(path).read()
            assert (len(content), hashlib.sha256(content).hexdigest()) == (info.size, info.sha256)
    assert 5_000 < refused < 10_000
