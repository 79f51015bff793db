"""What reviewers may not see yet: verdicts on pairs that they may still be asked for one themselves."""

from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db.models import Exists, OuterRef, Q, QuerySet

from review.models import Assignment, Pair

DECIDE = "review.decide_pair"


def undecided_pairs(user: User | AnonymousUser) -> QuerySet[Pair]:
    """Pairs that *user* holds, or has not decided while a seat at them is free or held by anybody, and so may get.

    A pair that they skipped is owed, too: a skip can be taken back. Administrators who are no reviewers by name owe
    only what they hold.
    """
    if not user.is_authenticated or not user.has_perm(DECIDE):
        return Pair.objects.none()
    mine = Assignment.objects.filter(pair=OuterRef("pk"), reviewer=user)
    if not _is_reviewer(user):
        return Pair.objects.filter(Exists(mine.filter(state=Assignment.State.OPEN)))
    held = Assignment.objects.filter(pair=OuterRef("pk"), state=Assignment.State.OPEN)
    undecided = Pair.objects.filter(Q(free__gt=0) | Exists(held), overlap__gt=0)
    return undecided.filter(~Exists(mine.filter(state=Assignment.State.DONE)))


def _is_reviewer(user: User) -> bool:
    if not user.is_superuser:
        return True
    app, _, codename = DECIDE.partition(".")
    given = Permission.objects.filter(content_type__app_label=app, codename=codename)
    return given.filter(Q(user=user) | Q(group__user=user)).exists()


def withheld(user: User | AnonymousUser) -> Q | None:
    """Which preferences *user* may not see; None where they may see all."""
    if not user.is_authenticated or not user.has_perm(DECIDE):
        return None
    owed = undecided_pairs(user)
    as_stored = owed.filter(first=OuterRef("first"), second=OuterRef("second"))
    exchanged = owed.filter(first=OuterRef("second"), second=OuterRef("first"))
    return Q(Exists(as_stored)) | Q(Exists(exchanged))
