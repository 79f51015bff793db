"""Typed access to environment variables. Error messages name the variable."""

import logging
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from hub.common.wording import find_similar

logger = logging.getLogger(__name__)

PREFIX = "LLMEVAL_"
# Settings that docker-compose reads from `.env`, and the token of the Python client: no process of the site reads them.
_READ_BY_OTHERS = {
    f"{PREFIX}{name}"
    for name in (
        "DOMAIN",
        "ENV_FILE",
        "HTTPS_PORT",
        "HTTP_PORT",
        "MLFLOW_PORT",
        "PORT",
        "SANDBOX_TARGET",
        "SITE_URL",
        "TOKEN",
    )
}
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
_LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$")
_QUOTED = re.compile(r"""\s*(['"])(.*?)\1\s*(?:#.*)?""")
_COMMENT = re.compile(r"\s+#.*")


class EnvironmentVariables:
    """Environment variables of the process, and of an optional `.env` file for those that the process does not set."""

    def __init__(self, values: Mapping[str, str], lines: Mapping[str, int] | None = None) -> None:
        """lines: the number of the line in `.env` of each variable that the file has."""
        self._values = values
        self._lines = lines or {}
        self._settings: set[str] = set()  # the names that were read

    @classmethod
    def load(cls, dotenv: Path) -> "EnvironmentVariables":
        """Read the `KEY=value` lines of *dotenv*, if the file exists. Variables in os.environ take precedence."""
        values: dict[str, str] = {}
        lines: dict[str, int] = {}
        if dotenv.is_file():
            try:
                text = dotenv.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError:
                raise ImproperlyConfigured(f"{dotenv} is not UTF-8 text. Save it with this encoding.") from None
            for number, line in enumerate(text.splitlines(), 1):
                if not line.strip() or line.lstrip().startswith("#"):
                    continue
                match = _LINE.match(line)
                if match is None:  # the message does not quote the line, which may contain a key
                    raise ImproperlyConfigured(
                        f"{dotenv}:{number}: expected KEY=value, or a comment that begins with #."
                    )
                values[match[1]], lines[match[1]] = _value(match[2]), number
        return cls({**values, **os.environ}, lines)

    def warn_about_unknown_settings(self, other_names: Iterable[str]) -> None:
        """Log a warning for each line of `.env` with a name LLMEVAL_... that was not read and is not in *other_names*.

        Variables of the process are not looked at: Kubernetes, for example, sets LLMEVAL_WEB_PORT for a service.
        """
        known = self._settings | _READ_BY_OTHERS
        for name, number in self._lines.items():
            if not name.startswith(PREFIX) or name in known or name in other_names:
                continue
            endings = sorted(other.removeprefix(PREFIX) for other in known if other.startswith(PREFIX))
            similar = find_similar(name.removeprefix(PREFIX), endings)
            advice = f" Did you mean {PREFIX}{similar}?" if similar else ""
            logger.warning(".env:%d: %s is not a setting, so it has no effect.%s", number, name, advice)

    def text(self, name: str, default: str = "") -> str:
        """Return the variable as it is."""
        raw = self._setting(name)
        return default if raw is None else raw

    def secret(self, name: str, advice: str) -> str | None:
        """Return the variable, or None if it is not set.

        An empty one is an error, such as a secret that nobody filled in; *advice* says what to do.
        """
        raw = self._setting(name)
        if raw is not None and not raw.strip():
            raise ImproperlyConfigured(f"{name} is set but empty. {advice}")
        return raw

    def choice(self, name: str, default: str, choices: Iterable[str]) -> str:
        """Return a variable that must have one of the values *choices*."""
        raw = self._setting(name) or default
        if raw not in choices:
            raise ImproperlyConfigured(f"{name}={raw!r} must be one of: {', '.join(choices)}.")
        return raw

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean: 1, true, yes or on; 0, false, no, off or empty."""
        raw = self._setting(name)
        if raw is None:
            return default
        if raw.lower() in _TRUE:
            return True
        if raw.lower() in _FALSE:
            return False
        raise ImproperlyConfigured(f"{name}={raw!r} is not a boolean; use 1 or 0.")

    def number(self, name: str, default: int, *, minimum: int = 0) -> int:
        """Return an integer, of at least *minimum*."""
        raw = self._setting(name)
        if raw is None or not raw.strip():
            return default
        try:
            number = int(raw)
        except ValueError:
            raise ImproperlyConfigured(f"{name}={raw!r} is not an integer.") from None
        if number < minimum:
            raise ImproperlyConfigured(f"{name}={raw} must be at least {minimum}.")
        return number

    def words(self, name: str, default: Iterable[str] = ()) -> list[str]:
        """Return the items of a comma-separated list."""
        raw = self._setting(name)
        return list(default) if raw is None else [part.strip() for part in raw.split(",") if part.strip()]

    def lookup(self, name: str) -> str | None:
        """Return a variable that a config refers to (an API key, a `${URL}`), or None if it is unset or empty."""
        return self._values.get(name) or None

    def _setting(self, name: str) -> str | None:
        self._settings.add(name)
        return self._values.get(name)


def _value(text: str) -> str:
    """Return the value in *text*, the rest of a line, without quotes and without a comment that follows it."""
    quoted = _QUOTED.fullmatch(text)
    return quoted[2] if quoted else _COMMENT.sub("", text).strip().strip("'\"")
