"""`manage.py token USER --scope train [--expires 90d]`: create, list or revoke REST tokens of a user."""

import re
from argparse import ArgumentTypeError
from datetime import timedelta

from django.contrib.auth.models import User
from django.core.management.base import CommandParser

from hub.common.wording import unknown_name
from hub.management.base import Command as BaseCommand
from hub.management.invocation import command
from llmeval_site.accounts.tokens import create_token, revoke_token
from llmeval_site.models import ApiToken

_DAYS = re.compile(r"([1-9][0-9]{0,4})d")


def lifetime(text: str) -> timedelta | None:
    """Parse --expires."""
    if text == "never":
        return None
    match = _DAYS.fullmatch(text)
    if match is None:
        raise ArgumentTypeError(f"{text!r} is neither a number of days such as 90d nor `never`")
    return timedelta(days=int(match[1]))


class Command(BaseCommand):
    help = "Create a REST token and print its key, which is shown only once; or list or revoke the tokens of a user."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER")
        action = parser.add_mutually_exclusive_group(required=True)
        action.add_argument(
            "--scope", action="append", choices=ApiToken.Scope.values, help="what the token may do; may be repeated"
        )
        action.add_argument("--list", action="store_true", help="print the tokens of the user, without their keys")
        action.add_argument("--revoke", metavar="PREFIX", help="revoke the token that begins with PREFIX")
        parser.add_argument("--expires", type=lifetime, default="90d", metavar="90d", help="days, or `never`")
        parser.add_argument("--name", default="", help="what the token is for")

    def handle(
        self,
        *,
        user: str,
        scope: list[str] | None,
        list: bool,
        revoke: str | None,
        expires: timedelta | None,
        name: str,
        **options: object,
    ) -> None:
        owner = User.objects.filter(username=user).first()
        if owner is None:
            names = User.objects.order_by("username").values_list("username", flat=True)
            none = f"none is stored yet, and {command('serve')} creates the first"
            raise self.invalid_input(unknown_name("user", user, names, none=none))
        if list:
            for token in owner.api_tokens.all():
                used = f"{token.last_used_at:%Y-%m-%d}" if token.last_used_at else "never used"
                words = [token.prefix, ",".join(token.scopes), token.state, used, token.name]
                self.stdout.write("  ".join(word for word in words if word))
            return
        if revoke is not None:
            found = owner.api_tokens.filter(prefix=revoke[:12]).first()
            if found is None:
                raise self.invalid_input(f"{owner} has no token that begins with {revoke[:12]!r}; see --list.")
            revoke_token(found)
            self.stdout.write(f"{found.prefix} is revoked.")
            return
        _, key = create_token(user=owner, scopes=scope or [], name=name, lifetime=expires)
        self.stdout.write(key)
