"""Options of the `openai` provider: the model, the address of its endpoint and the variable that holds the key."""

import re
from typing import Annotated
from urllib.parse import SplitResult, parse_qsl, urlsplit, urlunsplit

from pydantic import Field, field_validator

from hub.common import wording
from hub.common.masking import mask
from runs.providers.base import ProviderOptions

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_KEY_LENGTH = 24  # longer than the name of any allowed variable; a longer value may be a key, which is not repeated
# Query parameters that carry a secret, by the end of their names without `-`, `_` and `.`.
_SECRET_PARAMETERS = ("key", "token", "secret", "signature", "password", "passwd", "pwd", "credential", "auth")
_KEY_ADVICE = "put it into a variable and name that in api_key_env"


class OpenAIOptions(ProviderOptions):
    """Options of the `openai` provider.

    model: name of the model at the endpoint. api_key_env: name of the variable with the key. timeout_s: time limit of
    one request.
    """

    model: Annotated[str, Field(min_length=1)]
    base_url: str = DEFAULT_BASE_URL
    api_key_env: str | None = None
    timeout_s: Annotated[float, Field(gt=0)] = 300.0

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, value: str) -> str:
        if not value.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://, and usually ends in /v1")
        parts = urlsplit(value)
        if not parts.hostname or not _has_valid_port(parts):
            raise ValueError("must name a host, and a port between 1 and 65535 if there is one")
        import httpx2  # commands that read no endpoints do without it

        try:
            httpx2.URL(value)
        except httpx2.InvalidURL:
            raise ValueError("must be a valid address") from None
        if parts.fragment:
            raise ValueError("must not contain a `#`")
        if "@" in parts.netloc:
            raise ValueError(f"must not contain a user name or password; {_KEY_ADVICE}")
        for name in _query_names(parts.query):
            plain = re.sub(r"[-_.]", "", name.lower())
            if plain == "sig" or plain.endswith(_SECRET_PARAMETERS):
                raise ValueError(f"must not contain a key (the parameter `{name}`); {_KEY_ADVICE}")
        if mask(value) != value:
            raise ValueError(f"must not contain a key; {_KEY_ADVICE}")
        path = parts.path.rstrip("/")
        if path.endswith("/chat/completions"):
            raise ValueError("must end before /chat/completions, which is added to it")
        return urlunsplit(parts._replace(path=path))

    @property
    def address(self) -> str:
        """Return `base_url` without its query."""
        return urlunsplit(urlsplit(self.base_url)._replace(query=""))

    @property
    def request_url(self) -> str:
        """Return the URL of requests, with the query of `base_url`, which may hold a secret."""
        query = urlsplit(self.base_url).query
        return f"{self.address}/chat/completions{f'?{query}' if query else ''}"


def _has_valid_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def _query_names(query: str) -> list[str]:
    return [name for name, _ in parse_qsl(query.replace(";", "&"), keep_blank_values=True)]


def describe_wrong_key_variable(name: str, allowed: list[str]) -> str:
    """Return why *name* is not a valid `api_key_env`. A value that may be a key is not repeated."""
    adds = "LLMEVAL_API_KEY_VARIABLES adds more"
    if not name.lstrip("$").isidentifier() or (len(name) > _KEY_LENGTH and not name.isupper()):
        return f"this looks like a key; give the variable that holds it, one of {', '.join(allowed)} ({adds})"
    return f"{name!r} is not an allowed variable; {wording.suggest(name, allowed)} ({adds})"
