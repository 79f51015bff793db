"""Which engine this is: a digest of its source, so that a pool notices one of another release behind a stale image."""

import os

try:
    from _sha2 import sha512  # type: ignore[import-not-found]  # `hashlib` would load OpenSSL into every run
except ImportError:  # Python 3.11
    from _sha512 import sha512  # type: ignore[import-not-found]

_SHOWN = 12


def digest(folder: str) -> str:
    """Twelve hexadecimal digits for the names and contents of the Python files in a folder. Raises OSError."""
    found = sha512()
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".py")):
        with open(f"{folder}/{name}", "rb") as file:
            content = file.read()
        found.update(f"{name} {len(content)}\n".encode())
        found.update(content)
    return str(found.hexdigest()[:_SHOWN])
