"""Images in the messages of cases: files of the bundle and columns with bytes become data URLs."""

from collections.abc import Mapping
from typing import cast

from hub.datasets.row_types import Opener
from hub.manifest.schema import check_relative
from hub.protocols.images import MAX_IMAGE_BYTES, checked_data_url, decode_image, encode_image
from hub.protocols.messages import JSON, ContentPart, Message


def embed_images(messages: list[Message], open_file: Opener) -> list[Message]:
    """Return *messages* with the images of their parts as data URLs. Raises ValueError.

    The `url` of an `image_url` part is one of: a path of the bundle, `{"b64": ...}` as columns with bytes have it, a
    data URL, or an address on the web, which stays as it is.
    """
    return [_embed(number, message, open_file) for number, message in enumerate(messages, 1)]


def _embed(number: int, message: Message, open_file: Opener) -> Message:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return message
    if not isinstance(content, list) or not content:
        raise ValueError(f"message {number}: the content must be text, or a list of parts.")
    parts = []
    for part in content:
        try:
            parts.append(_check_part(part, open_file))
        except ValueError as error:
            raise ValueError(f"message {number}: {error}") from None
    return {**message, "content": parts}


def _check_part(part: object, open_file: Opener) -> ContentPart:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise ValueError('each part must be an object with a type, such as {"type": "text", "text": "..."}.')
    if part["type"] == "text" and not isinstance(part.get("text"), str):
        raise ValueError("a part of type text must have text.")
    if part["type"] != "image_url":
        return cast(ContentPart, part)
    image = part.get("image_url")
    if not isinstance(image, dict) or "url" not in image:
        raise ValueError('a part of type image_url must have {"image_url": {"url": ...}}.')
    return cast(ContentPart, {**part, "image_url": {**image, "url": _data_url(image["url"], open_file)}})


def _data_url(url: JSON, open_file: Opener) -> str:
    if isinstance(url, Mapping):
        return encode_image(decode_image(url.get("b64")), "the image")
    if not isinstance(url, str) or not url:
        raise ValueError('the url of an image must be a path in the bundle, {"b64": ...}, a data URL or an address.')
    if url.startswith(("https://", "http://")):
        return url
    if url.startswith("data:"):
        return checked_data_url(url)
    try:
        with open_file(check_relative(url)) as file:
            content = file.read(MAX_IMAGE_BYTES + 1)
    except OSError as error:
        raise ValueError(f"the bundle has no image {url!r}.") from error
    return encode_image(content, f"the image {url!r}")
