"""Metadata of cases as columns of a list, by which it is filtered and sorted.

The keys and values are those of a sample, so that the number of cases does not matter.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db.models import JSONField, Q, QuerySet, TextField, Value
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast, LPad

from hub.models import Case, EnvironmentVersion

SAMPLE = 200  # cases
MAX_COLUMNS = 4
MAX_VALUES = 40  # that a filter offers; keys with more values have a column, but no filter
_LONGEST = 80  # characters of a value
_KEY = re.compile(r"[A-Za-z_][\w-]{0,39}")  # keys that can be a part of a parameter and of an id in HTML
_DIGITS = 20  # whole numbers are sorted as text of this length


@dataclass(slots=True)
class MetadataColumn:
    """Key of the metadata with the values that filter by it. `whole`: all values of the sample are whole numbers."""

    key: str
    values: list[str] = field(default_factory=list)
    whole: bool = False

    @property
    def sort(self) -> str:
        """Return its name in `?sort=`."""
        return f"meta.{self.key}"


def metadata_columns(version: EnvironmentVersion) -> list[MetadataColumn]:
    """Return the keys that most cases of *version* have.

    They are in alphabetical order, which is the same on every database.
    """
    positions = range(0, version.case_count, max(1, version.case_count // SAMPLE))
    sample = Case.objects.filter(version=version, position__in=list(positions)).order_by("position")
    values: dict[str, dict[str, None]] = {}
    counts: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    for metadata in sample.values_list("data__metadata", flat=True):
        for key, value in (metadata if isinstance(metadata, dict) else {}).items():
            texts = list(value_texts(value))
            if texts and _KEY.fullmatch(key):
                values.setdefault(key, {}).update(dict.fromkeys(texts))
                counts[key] += 1
                numbers[key] += isinstance(value, int) and not isinstance(value, bool) and value >= 0
    shown = sorted(sorted(counts, key=lambda key: (-counts[key], key))[:MAX_COLUMNS])
    return [_column(key, list(values[key]), numbers[key] == counts[key]) for key in shown]


def _column(key: str, values: list[str], whole: bool) -> MetadataColumn:
    offered = sorted(values, key=int) if whole else sorted(values)
    return MetadataColumn(key, offered if 1 < len(offered) <= MAX_VALUES else [], whole)


def value_texts(value: object) -> Iterator[str]:
    """Yield a value of metadata as texts: each item of a list, nothing for objects and long texts."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, bool):
            yield "true" if item else "false"
        elif isinstance(item, int | float) or (isinstance(item, str) and 0 < len(item) <= _LONGEST):
            yield str(item)


def split_filter(text: str) -> tuple[str, str]:
    """Return key and value of `?meta=level:hard`; both empty if *text* has no colon."""
    key, colon, value = text.partition(":")
    return (key, value) if colon else ("", "")


def filter_metadata(cases: QuerySet[Case], key: str, value: str) -> QuerySet[Case]:
    """Return the cases whose metadata has *value* at *key*, or in the list there."""
    in_list = Q(metadata_text__startswith="[", metadata_text__contains=json.dumps(value, ensure_ascii=False))
    return cases.annotate(metadata_text=_text(key)).filter(Q(metadata_text=value) | in_list)


def with_sort_key(cases: QuerySet[Case], column: MetadataColumn) -> QuerySet[Case]:
    """Annotate the cases with `metadata_key`, by which a list is sorted by *column*."""
    text = _text(column.key)
    return cases.annotate(metadata_key=LPad(text, _DIGITS, Value("0")) if column.whole else text)


def _text(key: str) -> Cast:
    metadata = KeyTransform("metadata", Cast("data", JSONField()))
    return Cast(KeyTextTransform(key, metadata), TextField())
