"""Origin of a config: a file, the site or REST. It decides which paths and variables the config may use."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSource:
    """Origin of a config, which decides what the config may refer to.

    name: for messages. base_dir: folder that paths are relative to; None if the config must not contain paths (web and
    REST). lookup: returns the value of an environment variable, or None if it is not set; if lookup itself is None, the
    config must not contain `${}` at all. variables: names that `${}` may contain. key_variables: names of variables
    that hold keys.
    """

    name: str = "config"
    base_dir: Path | None = None
    lookup: Callable[[str], str | None] | None = None
    variables: frozenset[str] = field(default_factory=frozenset)
    key_variables: frozenset[str] = field(default_factory=frozenset)
