"""Admin pages for users, for REST tokens and webhooks of all users, and for the audit log."""

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest

from llmeval_site.accounts.passwords import invite_user
from llmeval_site.accounts.tokens import revoke_token
from llmeval_site.models import ApiToken, AuditEntry, Webhook

admin.site.unregister(User)


@admin.register(User)
class InvitingUserAdmin(UserAdmin):
    """Django's admin of users, with an action that invites them by mail."""

    actions = ["invite"]

    @admin.action(description="Mail a link to choose a password", permissions=["change"])
    def invite(self, request: HttpRequest, users: QuerySet[User]) -> None:
        """Invite each of *users*."""
        for user in users:
            if invite_user(user, request):
                messages.success(request, f"A link was mailed to {user} at {user.email}.")
            else:
                messages.warning(request, f"{user} is inactive or has no mail address.")


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):
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


@admin.register(Webhook)
class WebhookAdmin(admin.ModelAdmin):
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
