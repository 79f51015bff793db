"""Models of teams, environments, their immutable versions, cases, reports of wrong cases and drafts of uploads."""

import uuid
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.files.storage import Storage, storages
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

from hub.common.fields import OrderedJSONField
from hub.common.leases import Leased

BUNDLES = "bundles"  # folder in the storage of archives


def archive_storage() -> Storage:
    """Return the storage of archives; hub/bundles/stored.py is the only module that writes to it."""
    return storages["archives"]


def bundle_path(version: "EnvironmentVersion", filename: str) -> str:
    """Return a content-addressed path: equal bundles share a file and none is overwritten."""
    return str(PurePosixPath(BUNDLES, version.digest[:2], f"{version.digest}.zip"))


class Team(models.Model):
    """A group of users that owns environments, runs and models. Its members are the users in the group.

    The quotas limit what the team uses. An empty quota is no limit.
    """

    SHARED = "shared"  # users write this for "no team", so no team may have this slug

    group = models.OneToOneField(Group, models.CASCADE, related_name="team")
    slug = models.SlugField(max_length=64, unique=True, help_text="Its name in REST, configs and addresses.")
    managers = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        blank=True,
        related_name="+",
        help_text="Members who move what the team owns to another team.",
    )
    spend_usd_per_month = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="US dollars that its runs may spend in a calendar month (UTC).",
    )
    runs_per_day = models.PositiveIntegerField(
        null=True, blank=True, help_text="Runs that its members may start in a day (UTC)."
    )
    storage_bytes = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="Bytes of the bundles of its environments, all versions together."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug

    def clean(self) -> None:
        if self.slug == self.SHARED:
            raise ValidationError({"slug": f"{self.SHARED} stands for no team. Choose another slug."})

    @property
    def name(self) -> str:
        """The name of its group."""
        return self.group.name


class TeamOwned(models.Model):
    """Something that a team may own. `hub.teams.visibility` decides who sees it."""

    team = models.ForeignKey(
        Team,
        models.PROTECT,  # if it were set to null, everybody would see what a deleted team owned
        null=True,
        blank=True,
        related_name="+",
        help_text="The team that owns it, whose members alone see it. Empty: shared with everybody.",
    )

    class Meta:
        abstract = True


class Environment(TeamOwned):
    """Environment of the catalogue: a slug and its versions. Curators may edit its texts and flags."""

    class Visibility(models.TextChoices):
        PRIVATE = "private", "private (its owner and curators)"
        PUBLISHED = "published", "published"
        RETIRED = "retired", "retired (kept for old runs)"

    slug = models.SlugField(max_length=64, unique=True)
    title = models.CharField(max_length=120)
    summary = models.CharField(max_length=400)
    category = models.CharField(max_length=32, db_index=True)
    tags = OrderedJSONField(default=list, blank=True)
    license = models.CharField(max_length=120, blank=True)
    held_out = models.BooleanField(
        default=False,
        help_text="Reserved for evaluation: never exported as training data and not available for RL episodes. Cases, "
        "targets, bundle and reasons of scores are shown only to the owner, curators and accounts with the permission "
        "hub.view_held_out. It cannot be turned off again.",
    )
    partly_held_out = models.BooleanField(
        default=False,
        help_text="A version has held-out splits: their cases are not available for training, and the content is shown "
        "as that of a held-out environment, except for the other cases.",
    )
    featured = models.BooleanField(default=False)
    visibility = models.CharField(max_length=16, choices=Visibility, default=Visibility.PRIVATE)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    latest = models.ForeignKey("EnvironmentVersion", models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = [Lower("title"), "slug"]
        permissions = [
            ("curate_environment", "Can upload, publish and retire environments"),
            ("view_held_out", "Can see cases, targets and reasons of held-out environments"),
        ]

    def __str__(self) -> str:
        return self.slug


class EnvironmentVersion(models.Model):
    """One version, immutable once stored: manifest, bundle and cases under one digest.

    `digest` is the SHA-256 over the bundle's files. `certificate` is the result of the gates; it may be added later.
    """

    environment = models.ForeignKey(Environment, models.CASCADE, related_name="versions", db_index=False)
    version = models.CharField(max_length=64)
    digest = models.CharField(max_length=64, db_index=True)
    manifest = OrderedJSONField()
    readme = models.TextField(blank=True)
    archive = models.FileField(storage=archive_storage, upload_to=bundle_path, max_length=200)
    archive_bytes = models.PositiveBigIntegerField(null=True, help_text="Size of the archive; null if not measured.")
    case_count = models.PositiveIntegerField(default=0)
    certificate = OrderedJSONField(null=True, blank=True)
    deprecated = models.CharField(
        max_length=400, blank=True, help_text="Why users should switch to another version; empty if they need not."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [models.UniqueConstraint(fields=["environment", "version"], name="one_row_per_version")]

    def __str__(self) -> str:
        return f"{self.environment.slug}@{self.version}"


class GateRequest(Leased):
    """Request to run the gates of a version, leased by the worker that runs them and deleted once they have run."""

    version = models.OneToOneField(EnvironmentVersion, models.CASCADE, related_name="gate_request")
    tries = models.PositiveSmallIntegerField(default=0)
    problem = models.TextField(blank=True, help_text="Error of the last try; empty if there was none.")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"gates of {self.version}"


class Case(models.Model):
    """One case of a version. `data` is a CaseData as JSON; the digests identify its input and its scoring."""

    version = models.ForeignKey(EnvironmentVersion, models.CASCADE, related_name="cases", db_index=False)
    position = models.PositiveIntegerField()
    external_id = models.CharField(max_length=200)
    data = OrderedJSONField()
    input_digest = models.CharField(max_length=64)
    scoring_digest = models.CharField(max_length=64)
    held_out = models.BooleanField(default=False, help_text="Of a held-out split, though its environment may be open.")

    class Meta:
        ordering = ["version_id", "position"]  # by the column: "version" would join and sort by the version's date
        constraints = [
            models.UniqueConstraint(fields=["version", "external_id"], name="one_case_per_id"),
            models.UniqueConstraint(fields=["version", "position"], name="one_case_per_position"),
        ]

    def __str__(self) -> str:
        return self.external_id


class CaseDefect(models.Model):
    """Report that a case is wrong (its text, target or tests). Scores are never changed; once a curator accepts
    the report, results of later runs exclude the case and mention it.
    """

    class Status(models.TextChoices):
        OPEN = "open", "open"
        ACCEPTED = "accepted", "accepted: the case is quarantined"
        REJECTED = "rejected", "rejected: the case is correct"

    case = models.ForeignKey(Case, models.CASCADE, related_name="defects")
    reported_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    description = models.TextField()
    status = models.CharField(max_length=16, choices=Status, default=Status.OPEN, db_index=True)
    resolved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    resolution = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.case.external_id}: {self.status}"


class LiveDrafts(models.Manager["UploadDraft"]):
    """The drafts that have not expired."""

    def get_queryset(self) -> models.QuerySet["UploadDraft"]:
        return super().get_queryset().filter(changed_at__gt=timezone.now() - UploadDraft.KEPT)


class UploadDraft(models.Model):
    """An uploaded bundle with problems, which its owner corrects on the site. Nobody else can see it.

    It is text that nobody has checked: it is validated, but none of its code is executed. It is deleted once its bundle
    is stored as a version, and expires a while after its last change.
    """

    KEPT = timedelta(days=7)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    team = models.ForeignKey(
        Team,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="The team that will own a new environment.",
    )
    name = models.CharField(max_length=200)
    archive = models.BinaryField()
    problems = OrderedJSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(default=timezone.now, db_index=True)

    objects = models.Manager["UploadDraft"]()
    live = LiveDrafts()

    class Meta:
        ordering = ["-changed_at"]

    def __str__(self) -> str:
        return self.name

    @property
    def expires_at(self) -> datetime:
        return self.changed_at + self.KEPT
