"""People in the groups that the product makes."""

from django.contrib.auth.models import Group, User


def member(*groups: str, name: str = "", staff: bool = False) -> User:
    """A user of the named groups; without any, somebody who may only look."""
    user = User.objects.create_user(name or "-".join(groups).lower() or "onlooker", is_staff=staff)
    user.groups.set(Group.objects.filter(name__in=groups))
    return user
