"""Exports of preferences as downloads, for pages and REST."""

from itertools import chain

from django.contrib.auth.models import AnonymousUser, User
from django.http import StreamingHttpResponse

from preferences.exporters import zip_preferences
from preferences.selectors import PreferenceFilters, visible_preferences


def download_preferences(
    user: User | AnonymousUser, filters: PreferenceFilters, *, format: str
) -> StreamingHttpResponse:
    """Respond with the files of an export as a .zip, sent while its rows are made. Raises ExportError."""
    pieces = zip_preferences(visible_preferences(user), format=format, viewer=user, filters=filters)
    first = next(pieces)  # raises if there is nothing to write
    return StreamingHttpResponse(
        chain([first], pieces),
        content_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="preferences-{format}.zip"'},
    )
