"""Contents of messages in both APIs: text, and images as data URLs."""

from collections.abc import Collection, Mapping
from typing import cast

from hub.harnesses.endpoint.shapes import InvalidRequest
from hub.protocols.images import checked_data_url
from hub.protocols.messages import JSON, ContentPart

MAX_IMAGES = 50  # of one message
_DETAILS = ("auto", "low", "high", "original")


def text_content(content: JSON, types: Collection[str], where: str) -> str:
    """Return the text of *content*, which is text, null or a list of parts of *types*. Raises InvalidRequest."""
    return "".join(str(part["text"]) for part in _parts(content, types, "", where))


def user_content(content: JSON, types: Collection[str], image: str, where: str) -> str | list[ContentPart]:
    """Return *content*, which is text or a list of text parts of *types* and images, whose type is *image*.

    It is a list only if it has images; they have the format of chat completions. Raises InvalidRequest.
    """
    parts = _parts(content, types, image, where)
    count = sum(part["type"] != "text" for part in parts)
    if count > MAX_IMAGES:
        raise InvalidRequest(f"{where} has {count} images; at most {MAX_IMAGES} are allowed.", where)
    return parts if count else "".join(str(part["text"]) for part in parts)


def _parts(content: JSON, types: Collection[str], image: str, where: str) -> list[ContentPart]:
    if not isinstance(content, str | list | None):
        raise InvalidRequest(f"{where} must be text, a list of parts or null.", where)
    given = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    texts = [*types, "text"]
    return [_part(part, texts, image, f"{where}[{place}]") for place, part in enumerate(given)]


def _part(part: JSON, types: Collection[str], image: str, where: str) -> ContentPart:
    kind = part.get("type") if isinstance(part, dict) else None
    if image and kind == image and isinstance(part, dict):
        return _image(part, where)
    if not isinstance(part, dict) or not isinstance(kind, str) or kind not in types:
        supported = "only text and images are" if image else "only text is"
        text = f"{where}.type: {kind!r} is not supported; {supported}."
        raise InvalidRequest(text, f"{where}.type", code="unsupported_value")
    text = part.get("text") or part.get("refusal") or ""
    if not isinstance(text, str):
        raise InvalidRequest(f"{where}.text must be text.", f"{where}.text")
    return {"type": "text", "text": text}


def _image(part: Mapping[str, JSON], where: str) -> ContentPart:
    """Return an image part of either API as one of chat completions. Raises InvalidRequest."""
    given = part.get("image_url")
    nested = isinstance(given, dict)
    source = given if isinstance(given, dict) else {**part, "url": given}
    url, detail = source.get("url"), source.get("detail")
    at = f"{where}.image_url.url" if nested else f"{where}.image_url"
    if not isinstance(url, str) or not url.startswith("data:"):
        text = f"{at}: images must be data URLs (data:image/png;base64,...); addresses and file ids are not supported."
        raise InvalidRequest(text, at, code="unsupported_value")
    if detail is not None and detail not in _DETAILS:
        raise InvalidRequest(f"{where}.detail must be one of {', '.join(_DETAILS)}.", f"{where}.detail")
    try:
        image = {"url": checked_data_url(url), **({"detail": detail} if detail is not None else {})}
    except ValueError as error:
        raise InvalidRequest(f"{at}: {error}", at, code="invalid_image") from None
    return cast(ContentPart, {"type": "image_url", "image_url": image})
