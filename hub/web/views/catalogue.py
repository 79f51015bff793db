"""The catalogue of environments."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from hub.common.web.pagination import Order, keyset_page, order_of, page_or_part, render_list
from hub.models import Environment
from hub.selectors import is_curator
from hub.web import queries
from hub.web.forms import CatalogueForm

ENVIRONMENTS = 30  # on a page
FEATURED = Order(field="featured", descending=True)  # default order: featured first, then by slug


@require_safe
def catalogue(request: HttpRequest) -> HttpResponse:
    """List the environments that the user may see: /hub/?q=&category=&harness=&tag=&state=&team=&sort="""
    form = CatalogueForm(request.GET, user=request.user)
    chosen = form.chosen
    rows = queries.filter_environments(request.user, **form.values()) if form.is_valid() else Environment.objects.none()
    order = order_of(request, queries.ENVIRONMENT_COLUMNS)
    context = {
        "form": form,
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "order": order,
        "page": keyset_page(
            queries.with_harness(rows), request, by="slug", size=ENVIRONMENTS, order=order if order.name else FEATURED
        ),
        "total": rows.count(),
        "curator": is_curator(request.user),
        **queries.facets(request.user),
    }
    return render_list(request, page_or_part(request, "hub/catalogue.html", "environments"), context, form)
