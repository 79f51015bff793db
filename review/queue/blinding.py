"""Blinding: preferences hidden from reviewers who have not yet decided the same pair."""

from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db.models import Exists, OuterRef, Q, QuerySet

from review.models import Assignment, Pair

DECIDE = "review.decide_pair"


def undecided_pairs(user: User | AnonymousUser) -> QuerySet[Pair]:
    """Return the pairs that *user* holds or may still be assigned: not decided by them, with a free or open slot.

    Skipped pairs are included, because a skip can be undone. For superusers without the reviewer permission of their
    own, only the pairs that they hold are included.
    """
    if not user.is_authenticated or not user.has_perm(DECIDE):
        return Pair.objects.none()
    mine = Assignment.objects.filter(pair=OuterRef("pk"), reviewer=user)
    if not _is_reviewer(user):
        return Pair.objects.filter(Exists(mine.filter(state=Assignment.State.OPEN)))
    held = Assignment.objects.filter(pair=OuterRef("pk"), state=Assignment.State.OPEN)
    available = Pair.objects.filter(Q(free__gt=0) | Exists(held), overlap__gt=0)
    return available.filter(~Exists(mine.filter(state=Assignment.State.DONE)))


def _is_reviewer(user: User) -> bool:
    if not user.is_superuser:
        return True
    app, _, codename = DECIDE.partition(".")
    given = Permission.objects.filter(content_type__app_label=app, codename=codename)
    return given.filter(Q(user=user) | Q(group__user=user)).exists()


def withheld(user: User | AnonymousUser) -> Q | None:
    """Return the condition on preferences hidden from *user*, or None if no preference is hidden."""
    if not user.is_authenticated or not user.has_perm(DECIDE):
        return None
    undecided = undecided_pairs(user)
    if not _is_reviewer(user):  # few pairs: those that the user holds
        hidden = Q()
        for first, second in undecided.values_list("first", "second"):
            hidden |= Q(first=first, second=second) | Q(first=second, second=first)
        return hidden or None
    as_stored = undecided.filter(first=OuterRef("first"), second=OuterRef("second"))
    exchanged = undecided.filter(first=OuterRef("second"), second=OuterRef("first"))
    return Q(Exists(as_stored)) | Q(Exists(exchanged))
