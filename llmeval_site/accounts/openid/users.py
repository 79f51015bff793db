"""Users of the provider: which account a person gets, and its groups."""

import logging
import unicodedata
from collections.abc import Mapping

from django.contrib.auth.models import Group, User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone

from hub.common.storable import storable, unstorable_character
from llmeval_site.accounts.openid.errors import SignInError
from llmeval_site.configuration.openid import OpenIDSettings
from llmeval_site.models import OpenIDIdentity

logger = logging.getLogger(__name__)

Claims = Mapping[str, object]
_USERNAME_LENGTH = 140  # of 150, so that a number can follow
_MAX_SUBJECT = 255  # characters; also the limit of OpenID Connect
_MAX_MAIL = 254  # characters that `User.email` holds


def sign_in_user(*, id_token: Claims, userinfo: Claims, openid: OpenIDSettings) -> User:
    """Return the account of the person with these verified claims, with its groups updated. Raises SignInError.

    An account belongs to the subject that the provider names. At the first sign-in it is found by the mail address, but
    only if the provider has verified that, or created if the settings say so.
    """
    try:
        with transaction.atomic():
            identity = _find_identity(id_token, userinfo, openid)
            _set_groups(identity.user, {**id_token, **userinfo}, openid)
            OpenIDIdentity.objects.filter(pk=identity.pk).update(last_used_at=timezone.now())
    except IntegrityError:  # two first sign-ins of one person at the same time
        raise SignInError("Your account was being created by another sign-in. Start again.") from None
    return identity.user


def is_usable_subject(subject: object) -> bool:
    """Return whether *subject* can identify a person: all people with an empty one would share an account."""
    if not isinstance(subject, str) or unstorable_character(subject):
        return False
    return bool(subject.strip()) and len(subject) <= _MAX_SUBJECT


def _find_identity(id_token: Claims, userinfo: Claims, openid: OpenIDSettings) -> OpenIDIdentity:
    subject = str(id_token["sub"])
    named = userinfo if "email" in userinfo else id_token
    mail = _verified_mail(named)
    if openid.mail_domains and mail.rpartition("@")[2].lower() not in openid.mail_domains:
        allowed = ", ".join(openid.mail_domains)
        raise _refused(
            f"Only people with a verified mail address of these domains can sign in: {allowed}. "
            + (f"Yours is {mail}." if mail else f"{openid.label} names no verified address for you."),
            subject,
        )
    identity = OpenIDIdentity.objects.select_related("user").filter(issuer=openid.issuer, subject=subject).first()
    if identity is None:
        if not mail and _is_verified(named) and named.get("email"):
            raise _refused(
                f"{openid.label} names a mail address that an account of this site cannot have. Use another one there, "
                f"or ask an administrator to link your account: your identity is {subject}.",
                subject,
            )
        if not mail:
            raise _refused(
                f"{openid.label} does not say that your mail address is verified, so it cannot be matched with an "
                "account. Verify it there and start again, or ask an administrator to link your account: your identity "
                f"is {subject}.",
                subject,
            )
        user = _user_of_mail(mail, subject, openid) or _create_user(mail, {**id_token, **userinfo}, openid)
        identity = OpenIDIdentity.objects.create(issuer=openid.issuer, subject=subject, user=user)
        logger.info("OpenID: subject %s is linked to user %s.", subject, user.pk)
    if not identity.user.is_active:
        raise _refused("Your account is deactivated. An administrator can activate it.", subject)
    return identity


def _user_of_mail(mail: str, subject: str, openid: OpenIDSettings) -> User | None:
    """Return the only account with this address, or None."""
    # A database may treat different letters as equal, such as ı and I.
    users = [user for user in User.objects.filter(email__iexact=mail) if _normal(user.email) == _normal(mail)]
    if len(users) > 1:
        raise _refused(f"Several accounts have the address {mail}. An administrator can correct them.", subject)
    if users and OpenIDIdentity.objects.filter(user=users[0], issuer=openid.issuer).exists():
        raise _refused(
            f"The account with the address {mail} belongs to another identity at {openid.label}. An administrator can "
            "remove that link.",
            subject,
        )
    return users[0] if users else None


def _create_user(mail: str, claims: Claims, openid: OpenIDSettings) -> User:
    """Create an account without a password."""
    if not openid.creates_users:
        raise _refused(
            f"There is no account with the address {mail}. Ask an administrator to create one.", str(claims["sub"])
        )
    names = {field: _name(claims.get(claim)) for field, claim in _NAMES.items()}
    user = User.objects.create_user(_free_username(mail, claims), mail, **names)
    logger.info("OpenID: user %s was created.", user.pk)
    return user


_NAMES = {"first_name": "given_name", "last_name": "family_name"}


def _name(claim: object) -> str:
    return storable(claim)[:150] if isinstance(claim, str) else ""


def _free_username(mail: str, claims: Claims) -> str:
    """Return the name that the person has at the provider or in the address, with a number if it is taken."""
    wanted = str(claims.get("preferred_username") or "")
    try:
        UnicodeUsernameValidator()(wanted)
    except ValidationError:
        wanted = mail.partition("@")[0]
    wanted = User.normalize_username(wanted)[:_USERNAME_LENGTH]
    name, number = wanted, 1
    while User.objects.filter(username__iexact=name).exists():
        number += 1
        name = f"{wanted}-{number}"
    return name


def _set_groups(user: User, claims: Claims, openid: OpenIDSettings) -> None:
    """Add *user* to the local groups that the claim gives, and remove it from those that it no longer gives.

    Groups that LLMEVAL_OIDC_GROUPS does not name are left as they are.
    """
    if not openid.groups:
        return
    claimed = claims.get(openid.groups_claim) or []
    theirs = {claimed} if isinstance(claimed, str) else set(map(str, claimed)) if isinstance(claimed, list) else set()
    given = {ours for name, ours in openid.groups.items() if name in theirs}
    groups = {group.name: group for group in Group.objects.filter(name__in=openid.groups.values())}
    for name in sorted(given - set(groups)):
        logger.error("OpenID: LLMEVAL_OIDC_GROUPS names the group %r, which does not exist. Create it.", name)
    user.groups.add(*(group for name, group in groups.items() if name in given))
    user.groups.remove(*(group for name, group in groups.items() if name not in given))


def _verified_mail(claims: Claims) -> str:
    """Return the mail address if the provider has verified it and an account can have it, otherwise an empty text."""
    mail = claims.get("email")
    if not isinstance(mail, str) or not _is_verified(claims) or len(mail) > _MAX_MAIL:
        return ""
    try:
        validate_email(mail)
    except ValidationError:
        return ""
    return User.objects.normalize_email(mail)


def _is_verified(claims: Claims) -> bool:
    return claims.get("email_verified") in (True, "true")


def _normal(mail: str) -> str:
    return unicodedata.normalize("NFKC", mail).casefold()


def _refused(message: str, subject: str) -> SignInError:
    logger.warning("OpenID: subject %s may not sign in: %s", subject, message)
    return SignInError(message)
