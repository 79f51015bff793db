"""Files of a version: shown as text, downloaded one by one, or all as the stored .zip."""

from collections.abc import Iterator

from django.http import FileResponse, Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from hub.bundles.loader import Bundle
from hub.bundles.stored import open_stored_archive, open_stored_bundle
from hub.manifest.problems import MANIFEST, BundleError
from hub.models import EnvironmentVersion
from hub.web import queries
from hub.web.environment_page import page_context
from hub.web.reading.highlighting import MAX_HIGHLIGHTED

_CHUNK = 1 << 16


@require_safe
def files(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """List the files of a version, and show the beginning of `?file=`, by default of the manifest."""
    shown = queries.get_version_or_404(queries.get_environment_with_content(request.user, slug), version)
    with open_stored_bundle(shown) as stored:
        path = _chosen_file(request, shown, stored)
        text, problem = "", ""
        try:
            text = stored.head(path, MAX_HIGHLIGHTED)
        except BundleError as error:
            problem = " ".join(item.message for item in error.problems)
        size = stored.files[path].size
        listed = [(name, info.size) for name, info in stored.files.items()]
    context = page_context(request.user, shown, "files") | {
        "files": listed,
        "path": path,
        "size": size,
        "text": text,
        "problem": problem,
        "cut": MAX_HIGHLIGHTED if size > MAX_HIGHLIGHTED else 0,
    }
    return render(request, "hub/files.html", context)


def _chosen_file(request: HttpRequest, version: EnvironmentVersion, bundle: Bundle) -> str:
    path = request.GET.get("file", MANIFEST)
    if path not in bundle.files:
        raise Http404(f"{version} has no file {path!r}.")
    return path


@require_safe
def file(request: HttpRequest, slug: str, version: str) -> StreamingHttpResponse:
    """Download `?file=` of a version, by default its manifest. Browsers save it instead of opening it."""
    shown = queries.get_version_or_404(queries.get_environment_with_content(request.user, slug), version)
    stored = open_stored_bundle(shown)
    try:
        path = _chosen_file(request, shown, stored)
    except Http404:
        stored.close()
        raise
    headers = {
        "Content-Length": str(stored.files[path].size),
        "Content-Disposition": content_disposition_header(True, path.rpartition("/")[2]) or "",
    }
    return StreamingHttpResponse(_read(stored, path), content_type="application/octet-stream", headers=headers)


def _read(bundle: Bundle, path: str) -> Iterator[bytes]:
    with bundle, bundle.file(path) as source:
        while chunk := source.read(_CHUNK):
            yield chunk


@require_safe
def bundle(request: HttpRequest, slug: str, version: str) -> FileResponse:
    """Download the stored .zip."""
    shown = queries.get_version_or_404(queries.get_environment_with_content(request.user, slug), version)
    return FileResponse(
        open_stored_archive(shown),
        as_attachment=True,
        filename=f"{slug}-{shown.version}.zip",
        content_type="application/zip",
    )
