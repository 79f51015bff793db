"""Tokens for REST in the admin: administrators see whose they are, and revoke them."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from llmeval_site.models import ApiToken
from llmeval_site.tokens import revoke_token


@admin.action(description="Revoke the chosen tokens")
def revoke(_: Any, __: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
    for token in tokens:
        revoke_token(token)


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):
    list_display = ["prefix", "user", "name", "scopes", "state", "created_at", "expires_at", "last_used_at"]
    search_fields = ["prefix", "name", "user__username"]
    actions = [revoke]
    exclude = ["digest"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # its key could be shown to nobody but the administrator

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        return obj is None and super().has_change_permission(request, obj)  # actions, and no field

    def has_delete_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        return False
