"""Where a config comes from and what it may therefore refer to."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSource:
    """Origin of a config, which decides what the config may name.

    lookup: returns the value of an allowed environment variable, or None if it is not set. If lookup itself is None,
    the config must not contain `${}` at all (web and REST).
    """

    name: str = "config"
    base_dir: Path | None = None
    lookup: Callable[[str], str | None] | None = None
    variables: frozenset[str] = field(default_factory=frozenset)
    key_variables: frozenset[str] = field(default_factory=frozenset)
