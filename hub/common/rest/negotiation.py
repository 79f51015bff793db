"""Content types of REST: that of a response, by the header `Accept`, and those of bodies that can be read."""

from collections.abc import Iterable

from rest_framework.exceptions import NotAcceptable
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from hub.common.errors import UnsupportedEncoding
from hub.common.rest.error_bodies import PROBLEM


class ContentNegotiation(DefaultContentNegotiation):
    """Negotiation that returns JSON to clients that accept only the content type of errors.

    Bodies that are compressed as a whole are not read.

    Views that send files have `sends_files`: their files are sent whatever `Accept` says, and JSON is for errors.
    """

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """Return the parser of the body. Raises UnsupportedEncoding if the body is compressed."""
        encoding = request.headers.get("Content-Encoding", "identity")
        if encoding.lower() != "identity":
            raise UnsupportedEncoding(
                f"The Content-Encoding {encoding[:40]!r} is not supported; send the body uncompressed."
            )
        parser: BaseParser | None = super().select_parser(request, parsers)
        return parser

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Return the renderer and the content type. Raises NotAcceptable."""
        renderers = list(renderers)
        try:
            chosen: tuple[BaseRenderer, str] = super().select_renderer(request, renderers, format_suffix)
            return chosen
        except NotAcceptable:
            json = next((item for item in renderers if item.media_type == JSONRenderer.media_type), None)
            sends_files = getattr(request.parser_context["view"], "sends_files", False)
            if json is None or not (sends_files or PROBLEM in request.headers.get("Accept", "").lower()):
                raise
            return json, JSONRenderer.media_type
