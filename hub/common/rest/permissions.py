"""Permission classes of REST views."""

from rest_framework.permissions import BasePermission
from rest_framework.request import Request


def needs(permission: str) -> type[BasePermission]:
    """Return a permission class: reading requires sign-in, everything else Django's *permission*."""

    class Needs(BasePermission):
        message = f"Your account lacks the permission {permission}. An administrator can add you to a group with it."

        def has_permission(self, request: Request, view: object) -> bool:
            user = request.user
            if not user or not user.is_authenticated:
                return False
            return request.method in ("GET", "HEAD", "OPTIONS") or user.has_perm(permission)

    return Needs
