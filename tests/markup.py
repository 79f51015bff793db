"""The markup of a page without the line breaks and indentation of its template."""

import re

from django.http import HttpResponse

# Elements whose edges are no part of the text in them. Browsers ignore whitespace next to their tags.
_BLOCKS = (
    "article|aside|caption|dd|div|dl|dt|details|form|h[1-6]|li|nav|ol|option|p|section|select|summary|table|tbody|td|th|"
    "thead|tr|ul"
)
_AROUND_BLOCK = re.compile(rf"\s*(</?(?:{_BLOCKS})\b[^>]*>)\s*")


def markup(page: HttpResponse | str) -> str:
    """Return *page* with one space for each run of whitespace, and none next to the tags of block elements."""
    text = page if isinstance(page, str) else page.content.decode()
    return _AROUND_BLOCK.sub(r"\1", " ".join(text.split()))
