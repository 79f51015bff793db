"""People in the groups that the product makes."""

from importlib import import_module

from django.apps import apps
from django.contrib.auth.models import Group, User

_groups = import_module("llmeval_site.migrations.0002_groups")


def member(*groups: str, name: str = "", staff: bool = False) -> User:
    """A user of the named groups; without any, somebody who may only look."""
    if Group.objects.filter(name__in=groups).count() != len(groups):
        _groups.make_groups(apps, None)  # a test with real transactions has emptied the tables
    user = User.objects.create_user(name or "-".join(groups).lower() or "onlooker", is_staff=staff)
    user.groups.set(Group.objects.filter(name__in=groups))
    return user
