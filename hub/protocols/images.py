"""Images in messages: data URLs of bounded size, whose content has the type that they name."""

import base64
import binascii

MAX_IMAGE_BYTES = 4 * 1024 * 1024
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


def checked_data_url(url: str) -> str:
    """Return the data URL *url* of an image, with the type of its content. Raises ValueError."""
    head, _, data = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64"):
        raise ValueError("a data URL must be data:image/TYPE;base64,...")
    return encode_image(decode_image(data), "the image")


def decode_image(data: object) -> bytes:
    """Return the bytes of an image in base64. Raises ValueError."""
    try:
        return base64.b64decode(data if isinstance(data, str) else "-", validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the image is not valid base64.") from None


def encode_image(content: bytes, name: str) -> str:
    """Return the data URL of an image, which messages call *name*. Raises ValueError."""
    if len(content) > MAX_IMAGE_BYTES:
        raise ValueError(f"{name} is larger than {MAX_IMAGE_BYTES // 1024**2} MiB. Make it smaller.")
    kind = next((kind for signature, kind in _SIGNATURES.items() if content.startswith(signature)), "")
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        kind = "image/webp"
    if not kind:
        raise ValueError(f"{name} is not PNG, JPEG, GIF or WebP.")
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
