"""Queries of the pages and REST API of the review queue."""

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Exists, OuterRef
from django.http import Http404

from review.models import Pair
from review.queue.loading import pairs_with_responses
from runs.selectors import visible_runs


def get_visible_pair(user: User | AnonymousUser, pk: int) -> Pair:
    """Return the pair with everything its page shows. Raises Http404 if *user* may not see it or it does not exist."""
    visible = visible_runs(user).order_by().filter(pk=OuterRef("run_id"))
    found = pairs_with_responses(Pair.objects.filter(Exists(visible), pk=pk))
    if not found:
        raise Http404(
            f"There is no pair {pk}, its run was deleted, or the run or one of its environments is private to others."
        )
    return found[0]
