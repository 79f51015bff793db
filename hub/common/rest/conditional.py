"""ETags of single objects: `If-None-Match` saves the body of an unchanged one, `If-Match` prevents lost updates."""

from collections.abc import Callable
from typing import ClassVar

from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import set_response_etag
from django.utils.decorators import method_decorator
from django.utils.http import parse_etags
from django.views.decorators.http import conditional_page
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from hub.common.errors import UserError
from hub.common.rest.errors import ErrorBody

CONDITIONS = {304: None, 412: ErrorBody}  # answers to a GET request with `If-None-Match` or `If-Match`, for the schema


class HasChanged(UserError):
    """The object is not the one whose ETag the request names."""

    status_code = 412


@method_decorator(conditional_page, name="dispatch")
class ConditionalView(APIView):
    """View of one object. GET returns its ETag; requests with another one in `If-Match` are answered with 412.

    A request that changes the object holds a lock on its row from the comparison to its end, so that of two requests
    at once with the same ETag the second gets 412.
    """

    get: Callable[..., Response]
    model: ClassVar[type[Model]]  # the parameters of the URL are fields of it

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Answer the request, in a transaction if it changes the object that `If-Match` names."""
        if "If-Match" not in request.headers or request.method in SAFE_METHODS:
            response = super().dispatch(request, *args, **kwargs)
            if request.method == "HEAD" and isinstance(response, Response) and response.status_code == 200:
                response.add_post_render_callback(set_response_etag)  # conditional_page does this for GET only
            return response
        with transaction.atomic():
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Check permissions, then `If-Match`. Raises HasChanged."""
        super().initial(request, *args, **kwargs)
        conditional = request.method != "OPTIONS" and request.method in self.allowed_methods
        if "If-Match" not in request.headers or not conditional:
            return
        if request.method not in SAFE_METHODS:
            # Not FOR UPDATE, which would wait for rows that refer to this one, such as the responses of a run.
            list(self.model._default_manager.select_for_update(no_key=True).filter(**kwargs).values_list("pk"))
        given = parse_etags(request.headers["If-Match"])
        response = self.finalize_response(request, self.get(request, *args, **kwargs), *args, **kwargs)
        response.render()
        current = set_response_etag(response).headers["ETag"]
        # A proxy that compresses responses makes their ETags weak.
        if given != ["*"] and current not in [etag.removeprefix("W/") for etag in given]:
            raise HasChanged("It has changed since you read it, or If-Match is not its ETag. Nothing was changed.")
