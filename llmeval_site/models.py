"""Models that belong to no single app: tokens, OpenID identities, webhooks, the audit log, and stored responses."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from hub.common.fields import OrderedJSONField


class IdempotencyRecord(models.Model):
    """The response to one POST of one user. `status` is null while the first request is being processed."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=255)
    request_digest = models.CharField(
        max_length=64, help_text="SHA-256 of the request: a key is valid for one request."
    )
    status = models.PositiveSmallIntegerField(null=True)
    content_type = models.CharField(max_length=100, blank=True)
    headers = OrderedJSONField(default=dict, help_text="Further headers that are sent again, by name.")
    body = models.BinaryField(default=bytes)
    compressed = models.BooleanField(default=False, help_text="Whether `body` is compressed with gzip.")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_record_per_key")]

    def __str__(self) -> str:
        return self.key


class ApiToken(models.Model):
    """A token for REST. Only the SHA-256 of its key is stored, and its first characters as `prefix`.

    A token may do what its user may, limited by `scopes`. Revoked tokens are kept.
    """

    class Scope(models.TextChoices):
        READ = "read", "read: environments, runs, preferences"
        RUN = "run", "run: start, cancel and resume runs"
        TRAIN = "train", "train: episodes and their export"
        REVIEW = "review", "review: take pairs and decide them"
        CURATE = "curate", "curate: upload environments"
        TEAMS = "teams", "teams: change the members of your teams"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=120, blank=True)
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=64, unique=True)
    scopes = OrderedJSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.prefix}... of {self.user}"

    @property
    def state(self) -> str:
        """Return `active`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= timezone.now() else "active"


class OpenIDIdentity(models.Model):
    """A person at an OpenID provider, and the account that the person signs in to."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="openid_identities")
    issuer = models.CharField(max_length=255, help_text="The provider, as in LLMEVAL_OIDC_ISSUER.")
    subject = models.CharField(max_length=255, help_text="What the provider calls the person: the claim `sub`.")
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-id"]
        verbose_name = "OpenID identity"
        verbose_name_plural = "OpenID identities"
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="one_user_per_identity")]

    def __str__(self) -> str:
        return f"{self.subject} is {self.user}"


class AuditEntry(models.Model):
    """A change that a user made, or data that a user downloaded, on the site or over REST."""

    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    username = models.CharField(max_length=150, help_text="Name of the user at that time.")
    token = models.CharField(
        max_length=12, blank=True, help_text="First characters of the REST token, if one was used."
    )
    action = models.CharField(max_length=100, db_index=True, help_text="Name of the URL, such as runs:cancel.")
    method = models.CharField(max_length=8)
    path = models.CharField(max_length=500)
    status = models.PositiveSmallIntegerField(help_text="Status of the HTTP response.")
    request_id = models.CharField(max_length=36, help_text="X-Request-ID, as in the log.")

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.username}: {self.method} {self.path}"


class Webhook(models.Model):
    """An address that receives a signed request for each chosen event of the runs that its user may see."""

    class Event(models.TextChoices):
        COMPLETED = "run.completed", "run.completed: a run has completed"
        FAILED = "run.failed", "run.failed: a run has failed"
        CANCELLED = "run.cancelled", "run.cancelled: a user cancelled a run"
        STOPPED = "run.stopped", "run.stopped: a run reached its budget"
        INTERRUPTED = "run.interrupted", "run.interrupted: the process of a run was interrupted"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=500)
    secret = models.CharField(max_length=100, help_text="Key of the signature.")
    events = OrderedJSONField(default=list)
    failures = models.PositiveIntegerField(default=0, help_text="Deliveries in a row that were given up.")
    created_at = models.DateTimeField(auto_now_add=True)
    disabled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.url


class WebhookDelivery(models.Model):
    """One event for one webhook, with the result of the last attempt to send it."""

    class Status(models.TextChoices):
        WAITING = "waiting", "waiting"
        DELIVERED = "delivered", "delivered"
        FAILED = "failed", "given up"

    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries")
    event_id = models.UUIDField(unique=True)
    event = models.CharField(max_length=40)
    body = models.TextField()
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    attempted_at = models.DateTimeField(null=True, blank=True)
    response_status = models.PositiveSmallIntegerField(null=True, blank=True)
    problem = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "webhook deliveries"
        indexes = [models.Index(fields=["status", "next_attempt_at"], name="due_deliveries")]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook}"
