"""Digest of the engine's source, by which a pool recognises an engine of another release."""

import os

try:
    from _sha2 import sha512  # type: ignore[import-not-found]  # `hashlib` would load OpenSSL into every run
except ImportError:  # Python 3.11
    from _sha512 import sha512  # type: ignore[import-not-found]

_DIGITS = 12


def source_digest(folder: str) -> str:
    """Return twelve hexadecimal digits for the paths and contents of the Python files below `folder`.

    Raises OSError.
    """
    paths = [
        os.path.relpath(os.path.join(parent, name), folder)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.endswith(".py")
    ]
    total = sha512()
    for path in sorted(paths):
        with open(os.path.join(folder, path), "rb") as file:
            content = file.read()
        total.update(f"{path} {len(content)}\n".encode())
        total.update(content)
    return str(total.hexdigest()[:_DIGITS])
