"""Users in the groups that the product creates."""

from django.contrib.auth.models import Group, User


def member(*groups: str, name: str = "", staff: bool = False) -> User:
    """Create a user in *groups*. A user without groups may only view."""
    user = User.objects.create_user(name or "-".join(groups).lower() or "viewer", is_staff=staff)
    user.groups.set(Group.objects.filter(name__in=groups))
    return user
