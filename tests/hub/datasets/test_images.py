"""Images in the messages of cases."""

import base64
import io
import zlib
from typing import IO, Any

import pytest

from hub.datasets.images import MAX_IMAGE_BYTES, embed_images
from hub.protocols.messages import count_common_messages

PNG = b"\x89PNG\r\n\x1a\n" + zlib.compress(b"pixels")
ENCODED = base64.b64encode(PNG).decode()
URL = f"data:image/png;base64,{ENCODED}"


def open_file(path: str) -> IO[bytes]:
    """Open a file of a bundle with one image, a text and a large file."""
    files = {"images/a.png": PNG, "cases.jsonl": b"{}", "large.png": PNG + bytes(MAX_IMAGE_BYTES)}
    if path not in files:
        raise FileNotFoundError(path)
    return io.BytesIO(files[path])


def embed(content: Any) -> Any:
    (message,) = embed_images([{"role": "user", "content": content}], open_file)
    return message["content"]


def image(url: Any, **more: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **more}}


@pytest.mark.parametrize("url", ["images/a.png", URL, {"b64": ENCODED}], ids=["file", "data-url", "bytes"])
def test_images_become_data_urls(url: Any) -> None:
    text = {"type": "text", "text": "What is it?"}
    assert embed([text, image(url, detail="low")]) == [text, image(URL, detail="low")]


@pytest.mark.parametrize("content", ["text", None, [image("https://example.org/a.png")], [{"type": "input_audio"}]])
def test_other_content_stays_as_it_is(content: Any) -> None:
    assert embed(content) == content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (7, "message 1: the content must be text, or a list of parts"),
        ([], "the content must be text, or a list of parts"),
        (["text"], "each part must be an object with a type"),
        ([{"type": "text"}], "a part of type text must have text"),
        ([{"type": "image_url", "image_url": "images/a.png"}], "must have {.image_url.: {.url.: ...}}"),
        ([image(7)], "the url of an image must be a path in the bundle"),
        ([image("images/b.png")], "the bundle has no image 'images/b.png'"),
        ([image("../a.png")], "'../a.png' must be a relative path inside the bundle"),
        ([image("/etc/passwd")], "must be a relative path inside the bundle"),
        ([image("file:///etc/passwd")], "must be a relative path inside the bundle"),
        ([image("cases.jsonl")], "the image 'cases.jsonl' is not PNG, JPEG, GIF or WebP"),
        ([image("large.png")], "the image 'large.png' is larger than 4 MiB"),
        ([image("data:image/svg+xml;utf8,<svg/>")], "a data URL must be data:image/TYPE;base64"),
        ([image("data:image/png;base64,PHN2Zz4=")], "the image is not PNG"),
        ([image({"b64": "%"})], "the image is not valid base64"),
    ],
)
def test_wrong_content_is_reported(content: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        embed(content)


def test_prompts_that_differ_in_their_images_are_different() -> None:
    first, second = ([{"role": "user", "content": [image(url)]}, {"role": "assistant"}] for url in (URL, URL + "A"))
    assert count_common_messages(first, first) == 1  # type: ignore[arg-type]
    assert count_common_messages(first, second) == 0  # type: ignore[arg-type]
