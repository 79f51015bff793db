"""The WSGI entry point: `gunicorn llmeval_site.wsgi`."""

import os
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from django.core.wsgi import get_wsgi_application
from django.urls import resolve

from hub.common.garbage_collection import collect_seldom

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmeval_site.settings")
_django = get_wsgi_application()
resolve("/")  # imports all views
collect_seldom()
_CHUNK = 64 * 1024


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Respond with Django, then read the part of the request's body that Django has not read.

    Views that refuse a request, because of its method for example, do not read its body. With gunicorn 26.2 and threads
    the next request on that connection then often gets no response.
    """
    response = _django(environ, start_response)
    while environ["wsgi.input"].read(_CHUNK):
        pass
    return response
