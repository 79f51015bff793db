"""Downloads of exports: sent while they are made, whole or visibly broken off."""

import json
from collections.abc import Iterator

import pytest
from django.http import StreamingHttpResponse

from runs.exports import FailureFilters
from runs.exports.failure_formats.jsonl import FailureJsonl
from runs.exports.protocol import Export, ExportFormat, JSONObject, LeftOut
from runs.models import Run
from runs.web import downloads
from runs.web.downloads import download_failures
from tests.factories import stored_outcomes, stored_run, stored_version


class Numbers(ExportFormat[int]):
    """Numbers as rows; odd ones are left out."""

    name = "numbers"
    summary = "even numbers"

    def rows(self, item: int) -> Iterator[JSONObject]:
        if item % 2:
            raise LeftOut("odd")
        yield {"n": item}


def content_of(download: downloads.Download) -> Iterator[bytes]:
    assert isinstance(download.response, StreamingHttpResponse)
    content = download.response.streaming_content
    assert isinstance(content, Iterator)
    return content


def test_download_begins_before_later_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "BUFFERED", 3)
    read: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    download = downloads._download("numbers.jsonl", "number", Export(Numbers(), items))
    assert (len(read), download.left_out, "X-Left-Out" in download.response.headers) == (5, "", False)
    lines = b"".join(content_of(download)).splitlines()
    assert [json.loads(line)["n"] for line in lines] == list(range(0, 100, 2))


def test_small_download_names_what_it_leaves_out() -> None:
    download = downloads._download("numbers.jsonl", "number", Export(Numbers(), lambda: range(9)))
    assert download.left_out == "Left out 4: odd."
    assert json.loads(download.response.headers["X-Left-Out"]) == {"odd": 4}


def test_error_after_the_start_breaks_the_download_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "BUFFERED", 2)

    def items() -> Iterator[int]:
        yield from (0, 2, 4)
        raise OSError("the database is gone")

    content = content_of(downloads._download("numbers.jsonl", "number", Export(Numbers(), items)))
    with pytest.raises(OSError, match="gone"):
        list(content)


@pytest.mark.django_db
def test_failures_of_a_run_are_the_same_streamed_and_buffered(monkeypatch: pytest.MonkeyPatch) -> None:
    run: Run = stored_run(stored_version(cases=6))
    stored_outcomes(run, "ffffff")
    assert FailureJsonl.has_lines
    buffered = b"".join(content_of(download_failures(run, FailureFilters())))
    monkeypatch.setattr(downloads, "BUFFERED", 1)
    assert b"".join(content_of(download_failures(run, FailureFilters()))) == buffered
    assert buffered.count(b"\n") == 6
