"""Admin pages for users, their OpenID identities, REST tokens and webhooks, and for the audit log."""

from collections.abc import Sequence

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import ForeignKey, Model, QuerySet
from django.forms import ModelChoiceField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from hub.admin import ProtectedDeletionAdmin
from hub.web.audited import record_nothing
from llmeval_site.accounts.passwords import invite_user
from llmeval_site.accounts.tokens import revoke_token
from llmeval_site.models import ApiToken, AuditEntry, OpenIDIdentity, Webhook
from review.models import Assignment
from review.selectors import has_reviewed

admin.site.unregister([User, Group])


@admin.register(User)
class InvitingUserAdmin(UserAdmin):
    """Django's admin of users, with an action that invites them by mail.

    Tokens are deleted with their user, though they cannot be deleted alone. Users who have reviewed are not deleted.
    Only superusers grant superuser status and single permissions, and change or delete the accounts of superusers:
    other staff who may change users could otherwise give themselves every permission.
    """

    actions = ["invite"]

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        """Return the fields that are only shown."""
        fields = [str(name) for name in super().get_readonly_fields(request, obj)]
        return fields if request.user.is_superuser else [*fields, "is_superuser", "user_permissions"]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Return whether the user may change *obj*, which includes its password."""
        return _may_touch(request, obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return _may_touch(request, obj) and super().has_delete_permission(request, obj)

    def get_deleted_objects(
        self, objs: Sequence[User] | QuerySet[User], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Return what is deleted with the users *objs*, its counts, missing permissions, and what prevents it."""
        deleted, counts, missing, protected = super().get_deleted_objects(objs, request)
        missing -= {str(model._meta.verbose_name) for model in (ApiToken, Assignment)}
        return deleted, counts, missing, [*protected, *(_reviews_of(user) for user in objs if has_reviewed(user))]

    def has_invite_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may mail links to choose a password."""
        return bool(settings.PASSWORDS) and self.has_change_permission(request)

    @admin.action(description="Mail a link to choose a password", permissions=["invite"])
    def invite(self, request: HttpRequest, users: QuerySet[User]) -> HttpResponse | None:
        """Invite each of *users*."""
        invited = False
        for user in users:
            if invite_user(user, request):
                messages.success(request, f"A link was mailed to {user} at {user.email}.")
                invited = True
            else:
                messages.warning(request, f"{user} is inactive or has no mail address.")
        return None if invited else record_nothing(redirect(request.get_full_path()))


def _may_touch(request: HttpRequest, user: User | None) -> bool:
    """Return whether *user* is no superuser, or the request is a superuser's."""
    return user is None or not user.is_superuser or request.user.is_superuser


def _reviews_of(user: User) -> SafeString:
    """Return why *user* cannot be deleted, and what to do instead."""
    return format_html(
        'Reviews of {}, which belong to the preference data. Deactivate the account instead: untick "Active" on '
        '<a href="{}">its page</a>.',
        user,
        reverse("admin:auth_user_change", args=[user.pk]),
    )


@admin.register(Group)
class ProtectedGroupAdmin(ProtectedDeletionAdmin, GroupAdmin):
    """Django's admin of groups. The group of a team that owns something is not deleted, like the team.

    Only superusers choose the permissions of groups: other staff who may change groups could otherwise give their own
    group every permission.
    """

    def get_readonly_fields(self, request: HttpRequest, obj: Group | None = None) -> list[str]:
        """Return the fields that are only shown."""
        fields = [str(name) for name in super().get_readonly_fields(request, obj)]
        return fields if request.user.is_superuser else [*fields, "permissions"]


class SecretsAdmin(admin.ModelAdmin):
    """Admin of rows with secrets: the fields in `exclude` are not shown, and rows cannot be looked up by them."""

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Refuse lookups such as `?secret__startswith=a`, which would reveal a secret letter by letter."""
        return lookup.partition("__")[0] not in (self.exclude or ()) and super().lookup_allowed(lookup, value, request)


@admin.register(ApiToken)
class ApiTokenAdmin(SecretsAdmin):
    """List of tokens with an action that revokes them."""

    list_display = ["prefix", "user", "name", "scopes", "state", "created_at", "expires_at", "last_used_at"]
    search_fields = ["prefix", "name", "user__username"]
    actions = ["revoke"]
    exclude = ["digest"]

    @admin.action(description="Revoke the selected tokens")
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        """Revoke each of *tokens*."""
        for token in tokens:
            revoke_token(token)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # only the user of a token may see its key, so users create their own tokens

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        return obj is None and super().has_change_permission(request, obj)  # allow actions, but no edits

    def has_delete_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        return False


@admin.register(OpenIDIdentity)
class OpenIDIdentityAdmin(admin.ModelAdmin):
    """Links between people at the OpenID provider and users, which administrators can add and remove.

    Only superusers add and remove those of superusers: whoever links an identity to an account can sign in with it.
    """

    list_display = ["subject", "user", "issuer", "created_at", "last_used_at"]
    list_select_related = ["user"]
    search_fields = ["subject", "user__username", "user__email"]
    autocomplete_fields = ["user"]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, str | list[str]]:
        """Fill in the issuer of the settings."""
        return {"issuer": settings.OPENID.issuer if settings.OPENID else ""}

    def formfield_for_foreignkey(
        self, db_field: "ForeignKey[Model, Model]", request: HttpRequest, **kwargs: object
    ) -> "ModelChoiceField[Model] | None":
        """Accept only users whose accounts the user may change."""
        if db_field.name == "user" and not request.user.is_superuser:
            kwargs["queryset"] = User.objects.filter(is_superuser=False)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_change_permission(self, request: HttpRequest, obj: OpenIDIdentity | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: OpenIDIdentity | None = None) -> bool:
        may_touch = obj is None or _may_touch(request, obj.user)
        return may_touch and super().has_delete_permission(request, obj)


@admin.register(Webhook)
class WebhookAdmin(SecretsAdmin):
    """List of all webhooks, which administrators can delete."""

    list_display = ["url", "user", "events", "created_at", "disabled_at"]
    search_fields = ["url", "user__username"]
    exclude = ["secret"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # only the user of a webhook may see its secret

    def has_change_permission(self, request: HttpRequest, obj: Webhook | None = None) -> bool:
        return False


@admin.register(AuditEntry)
class AuditEntryAdmin(admin.ModelAdmin):
    """The audit log. Nobody can change it here."""

    list_display = ["created_at", "username", "token", "method", "path", "action", "status"]
    list_filter = ["created_at", "method", "action"]
    search_fields = ["username", "path", "request_id"]
    date_hierarchy = "created_at"
    list_select_related = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        return False
