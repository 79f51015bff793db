"""Index on disk for look-ups that would not fit into memory: used ids, rows to join, answers by case."""

import sqlite3
from collections.abc import Iterator


class DiskIndex:
    """Mapping of text to text in a temporary SQLite file that is deleted with the object."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)  # "": on disk, temporary
        self._db.execute("CREATE TABLE pairs (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def __enter__(self) -> "DiskIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def get(self, key: str) -> str | None:
        found = self._db.execute("SELECT value FROM pairs WHERE key = ?", (key,)).fetchone()
        return found[0] if found else None

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys that begin with *prefix*, in order."""
        for (key,) in self._db.execute("SELECT key FROM pairs WHERE substr(key, 1, ?) = ?", (len(prefix), prefix)):
            yield key

    def add(self, key: str, value: str) -> str | None:
        """Store *value* under *key* and return None; if the key exists, return its value and change nothing."""
        added = self._db.execute("INSERT OR IGNORE INTO pairs VALUES (?, ?)", (key, value)).rowcount
        return None if added else self.get(key)
