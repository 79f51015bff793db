"""Admin pages for REST tokens: administrators can list and revoke them."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from llmeval_site.accounts.tokens import revoke_token
from llmeval_site.models import ApiToken


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
