"""State of the page of a new run: what is chosen and entered, as in its address."""

import re
from dataclasses import dataclass, field

from django.http import QueryDict
from django.urls import reverse

from runs.config.schema import DEFAULT_CONCURRENCY

# Defaults of keys of a config, which a config of this page leaves out.
NUMBER_DEFAULTS = {"attempts": 1, "concurrency": DEFAULT_CONCURRENCY, "seed": 0}
# Defaults of the page, which its address leaves out.
DEFAULTS = {
    "name": "",
    "team": "",
    "cases": "all",
    "count": "",
    "attempts": str(NUMBER_DEFAULTS["attempts"]),
    "concurrency": str(NUMBER_DEFAULTS["concurrency"]),
    "budget": "",
    "seed": str(NUMBER_DEFAULTS["seed"]),
    "other": "",
    "q": "",
    "category": "",
    "page": "1",
    "model_q": "",
    "model_page": "1",
}
SELECTIONS = ("sample", "limit")
MAX_ADDRESS = 3500  # characters; servers cut the first line of a request at 4,094

_ENVIRONMENT = re.compile(r"^([^@:]+)(?:@([^:]+))?(?::(limit|sample)=([1-9]\d{0,8}))?$")
_ROLE = re.compile(r"^role_[a-z][a-z0-9_-]{0,62}$")


@dataclass(frozen=True, slots=True)
class EnvironmentChoice:
    """A chosen environment: its slug, a version unless it is the latest, and cases of its own if it has some."""

    slug: str
    version: str = ""
    selection: dict[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "EnvironmentChoice":
        """Return the choice written as `slug`, `slug@version` or `slug@version:sample=20`."""
        match = _ENVIRONMENT.match(text)
        if match is None:
            return cls(text)
        slug, version, key, count = match.groups()
        return cls(slug, version or "", {key: int(count)} if key else {})

    @property
    def reference(self) -> str:
        """Return `slug` or `slug@version`."""
        return f"{self.slug}@{self.version}" if self.version else self.slug

    def __str__(self) -> str:
        return self.reference + "".join(f":{key}={count}" for key, count in self.selection.items())


@dataclass(slots=True)
class Draft:
    """State of the page. environments, models: the values that are chosen. fields: every other value, as text."""

    environments: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=lambda: dict(DEFAULTS))

    @property
    def roles(self) -> list[str]:
        """Return the roles that a model is entered for."""
        return [key.removeprefix("role_") for key, value in self.fields.items() if _ROLE.match(key) and value]

    @property
    def listed(self) -> str:
        """Return the filters of the list of environments, as one text."""
        return f"{self.fields['category']} {self.fields['q']}"

    def data(self) -> dict[str, object]:
        """Return the state as data of a form."""
        return {**self.fields, "environment": self.environments, "model": self.models}

    def address(self) -> str:
        """Return the address of the page with this state; "" if it would be too long for servers."""
        query = QueryDict(mutable=True)
        query.setlist("environment", self.environments)
        query.setlist("model", self.models)
        cases, count = self.fields["cases"], self.fields["count"]
        short = cases in SELECTIONS and count
        if short:
            query[cases] = count
        for key, value in self.fields.items():
            if value and value != DEFAULTS.get(key) and not (short and key in ("cases", "count")):
                query[key] = value
        text = query.urlencode(safe="@:=/,")
        address = f"{reverse('runs:new')}?{text}" if text else reverse("runs:new")
        return address if len(address) <= MAX_ADDRESS else ""


def read_draft(given: QueryDict) -> Draft:
    """Return the state of the page from an address or a submitted form.

    `limit=10` and `sample=10` are short for `cases=limit&count=10`. The buttons of the form are applied: `drop` removes
    a choice, `do=clear-environment` all of them, `go` and `model_go` show another page of a list. A list returns
    to its first page if what it was filtered by, which `listed` and `model_listed` repeat, has changed.
    """
    values = {key: _storable(str(value)) for key, value in given.items()}
    fields = {key: values.get(key, default) for key, default in DEFAULTS.items()}
    fields |= {key: value for key, value in values.items() if _ROLE.match(key)}
    for key in SELECTIONS:
        if values.get(key) and "count" not in values:
            fields["cases"], fields["count"] = key, values[key]
    draft = Draft(_chosen(given, "environment"), _chosen(given, "model"), fields)
    for prefix, filters in (("", draft.listed), ("model_", fields["model_q"])):
        if values.get(f"{prefix}go"):
            fields[f"{prefix}page"] = values[f"{prefix}go"]
        elif values.get(f"{prefix}listed", filters) != filters:
            fields[f"{prefix}page"] = "1"
    return draft


def _chosen(given: QueryDict, key: str) -> list[str]:
    """Return the different values of *key*, without those that a button removes."""
    if given.get("do") == f"clear-{key}":
        return []
    dropped = {str(value) for value in given.getlist("drop")}
    values = dict.fromkeys(_storable(str(value)).strip() for value in given.getlist(key))
    return [value for value in values if value and f"{key}={value}" not in dropped]


def _storable(text: str) -> str:
    return text.replace("\x00", "")  # PostgreSQL cannot look it up
