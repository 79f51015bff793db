"""Permissions, which the first authentication backend reads in one query."""

import pytest
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, Permission, User
from pytest_django import DjangoAssertNumQueries

from tests.members import member

pytestmark = pytest.mark.django_db
CURATE = "hub.curate_environment"


def given(user: User, permission: str) -> User:
    user.user_permissions.add(Permission.objects.get(codename=permission.partition(".")[2]))
    return User.objects.get(pk=user.pk)


def test_permissions_are_those_of_the_user_and_of_all_groups() -> None:
    users = [
        member(),
        member("Reviewer"),
        given(member("Reviewer", "Curator", name="both"), CURATE),
        given(member(name="own"), CURATE),
    ]
    for user in users:
        expected = ModelBackend().get_all_permissions(User.objects.get(pk=user.pk))
        assert user.get_all_permissions() == expected
        assert user.has_perm(CURATE) == (CURATE in expected)
    assert [len(user.get_all_permissions()) > 0 for user in users] == [False, True, True, True]


def test_inactive_users_have_no_permissions_and_superusers_all() -> None:
    user = given(member(), CURATE)
    assert user.has_perm(CURATE) and not user.has_perm(CURATE, obj=user)
    user.is_active = False
    assert not user.has_perm(CURATE) and not user.get_all_permissions()
    root = User.objects.create_superuser("root")
    assert root.has_perm(CURATE) and CURATE in root.get_all_permissions()
    assert not AnonymousUser().has_perm(CURATE)


def test_permissions_are_read_once_in_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    user = member("Reviewer")
    with django_assert_num_queries(1):
        assert user.has_perm("review.decide_pair")
        assert not user.has_perm(CURATE)
    user.groups.clear()
    assert not User.objects.get(pk=user.pk).has_perm("review.decide_pair")
