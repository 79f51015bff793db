"""Every address of the site, for tests that visit all of them."""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

SAMPLES = {"int": 1, "slug": "sums", "str": "1.0.0", "path": "c0", "uuid": uuid.UUID(int=1)}


def addresses(resolver: Any = None, prefix: str = "/", samples: Mapping[str, object] = SAMPLES) -> Iterator[str]:
    """Every address of the site, its parameters filled in. samples: a value by `kind:name`, or else by kind."""
    for item in (resolver or get_resolver()).url_patterns:
        pattern = item.pattern
        route = str(getattr(pattern, "_route", "")) or str(pattern)
        for name, converter in pattern.converters.items():
            kind = type(converter).__name__.removesuffix("Converter").replace("String", "str").lower()
            value = str(samples.get(f"{kind}:{name}", samples.get(kind, "1")))
            for written in (f"<{kind}:{name}>", f"<{name}>"):
                route = route.replace(written, value)
        if isinstance(item, URLResolver):
            yield from addresses(item, prefix + route, samples)
        elif isinstance(item, URLPattern) and "(" not in route:
            yield prefix + route
