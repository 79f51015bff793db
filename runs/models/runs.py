"""A run: its settings and state, its environments and models, its shards, tags and spending."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils import timezone

from hub.common.fields import OrderedJSONField
from hub.common.leases import Leased
from hub.models import EnvironmentVersion, Team, TeamOwned

NOTE_LENGTH = 4000


class Run(Leased, TeamOwned):
    """One evaluation of models on environments."""

    class Status(models.TextChoices):
        QUEUED = "queued", "queued"
        RUNNING = "running", "running"
        COMPLETED = "completed", "completed"
        INTERRUPTED = "interrupted", "interrupted"
        STOPPED = "stopped", "stopped by its budget"
        CANCELLED = "cancelled", "cancelled"
        FAILED = "failed", "failed"

    class TrackingState(models.TextChoices):
        OFF = "off", "off"
        PENDING = "pending", "pending"
        LOGGED = "logged", "logged"

    name = models.CharField(max_length=120, db_index=True)
    status = models.CharField(max_length=16, choices=Status, default=Status.QUEUED, db_index=True)
    message = models.TextField(blank=True, help_text="Why it ended, unless it completed.")
    config = OrderedJSONField(help_text="The validated config: variables are filled in, credentials are not stored.")
    config_hash = models.CharField(max_length=64, db_index=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    evaluated_at = models.DateTimeField(
        null=True, blank=True, help_text="When its last response was stored. Judging and tracking follow."
    )
    seconds = models.FloatField(default=0.0, help_text="Wall time in seconds, resumed executions included.")
    cost_usd = models.FloatField(default=0.0, null=True, help_text="Null if a part of the cost is unknown.")
    host = OrderedJSONField(default=dict, help_text="Machine, Python and package versions.")
    tracking_state = models.CharField(
        max_length=16,
        choices=TrackingState,
        default=TrackingState.OFF,
        db_index=True,
        help_text="Pending: the config asks for MLflow, and the run is not logged yet.",
    )
    tracking = OrderedJSONField(
        default=dict, help_text='Links of the run in MLflow: {"experiment_id", "parent", "cells", ...}, or {"error"}.'
    )
    summaries = OrderedJSONField(
        default=dict, help_text="Summary of each stage after the last response, by its config key."
    )
    stage_progress = OrderedJSONField(
        default=dict, help_text='The stage that is executed now: {"key", "done", "total"}; empty if there is none.'
    )

    note = models.TextField(blank=True, max_length=NOTE_LENGTH, help_text="What people wrote about it.")
    rescored_from = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="rescorings",
        help_text="The run whose stored responses this one scored again.",
    )
    cancel_requested = models.BooleanField(default=False)
    deleted_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was deleted; it is then hidden but can be restored."
    )
    deleted_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    ready_at = models.DateTimeField(
        default=timezone.now, help_text="Since when it waits for a worker; after an infrastructure fault, until when."
    )
    remaining = models.PositiveIntegerField(
        default=0, help_text="Missing responses when it was queued last. Runs with fewer go first."
    )
    faults = models.PositiveSmallIntegerField(
        default=0, help_text="Infrastructure faults in a row, such as a sandbox service that does not answer."
    )
    failing_since = models.DateTimeField(null=True, blank=True, help_text="When the first of these faults occurred.")
    takeovers = models.PositiveIntegerField(
        default=0, help_text="How often a worker continued it after the process that executed it had died."
    )
    budget_granted = models.FloatField(
        default=0.0, help_text="Part of the budget in USD that is spent, or that a process of a divided run may spend."
    )

    budget_changes = OrderedJSONField(
        default=list,
        help_text='Changes of its budget when it was resumed: [{"from", "to", "by", "at"}]; by: a username.',
    )

    class Meta:
        ordering = ["-id"]
        # Of deleted runs only: lists filter by null, which nearly all rows have.
        indexes = [
            models.Index(fields=["deleted_at"], condition=models.Q(deleted_at__isnull=False), name="run_deleted")
        ]

    def __str__(self) -> str:
        return f"{self.name} (run {self.pk})"

    @property
    def retry_at(self) -> datetime | None:
        """Return when it is tried again after an infrastructure fault; None if it does not wait for that."""
        return self.ready_at if self.status == Run.Status.QUEUED and self.faults else None

    @property
    def attempts(self) -> int:
        """Return the number of responses of each model to each case."""
        return int(self.config.get("attempts", 1))


# Groups of statuses: a process executes an active run, or will; ended runs change only if a user resumes them.
ACTIVE = [Run.Status.QUEUED, Run.Status.RUNNING]
WITH_RESULTS = [Run.Status.COMPLETED, Run.Status.INTERRUPTED, Run.Status.STOPPED, Run.Status.CANCELLED]
ENDED = [*WITH_RESULTS, Run.Status.FAILED]


class RunEnvironment(models.Model):
    """An environment version in a run, and the cases of it that the run evaluates."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="environments", db_index=False)
    version = models.ForeignKey(EnvironmentVersion, models.PROTECT, related_name="+")
    position = models.PositiveSmallIntegerField()
    selection = OrderedJSONField(default=dict, help_text='{}, {"limit": n}, {"sample": n} or {"cases": [ids]}')
    case_positions = OrderedJSONField(
        null=True, help_text="Positions of the selected cases; null means the first case_count cases."
    )
    case_count = models.PositiveIntegerField()

    class Meta:
        ordering = ["run_id", "position"]  # by the column: "run" would join its table
        constraints = [models.UniqueConstraint(fields=["run", "version"], name="version_once_per_run")]

    def __str__(self) -> str:
        return str(self.version)


class RunModel(models.Model):
    """A model in a run: a model under test (`role` is empty), or a model that fills a role (rubric, user, judge)."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="models", db_index=False)
    label = models.CharField(max_length=120)
    role = models.CharField(max_length=64, blank=True)
    position = models.PositiveSmallIntegerField()
    provider = models.CharField(max_length=32)
    spec = OrderedJSONField(help_text="The model as configured. api_key_env is the name of a variable, never a key.")
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of everything that determines its replies.")
    stopped = models.TextField(
        blank=True, help_text="Why the run stopped calling it, such as a wrong key or an unknown model."
    )

    class Meta:
        ordering = ["run_id", "role", "position"]
        constraints = [models.UniqueConstraint(fields=["run", "role", "label"], name="label_once_per_role")]

    def __str__(self) -> str:
        return self.label

    @property
    def priced(self) -> bool:
        """Return whether the cost of its calls is known. Recordings and models without a price have none."""
        return bool(self.spec.get("price"))


class Shard(Leased):
    """Block of cases for one model of a large run. The process that holds its lease requests the missing responses.

    A run has shards from the start of its execution until it ends. If a command executes the run, `reserved_for` is the
    owner of its lease, and only the command and its local processes execute the shard. Otherwise it is empty, and every
    worker may execute the shard.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="shards", db_index=False)
    run_environment = models.ForeignKey(RunEnvironment, models.CASCADE, related_name="+")
    run_model = models.ForeignKey(RunModel, models.CASCADE, related_name="+", db_index=False)
    first = models.PositiveIntegerField(help_text="Position of the first case.")
    last = models.PositiveIntegerField(help_text="Position of the last case.")
    reserved_for = models.CharField(
        max_length=100, blank=True, help_text="Who alone may execute it: a command with its local processes."
    )
    fresh = models.BooleanField(default=True, help_text="No response of it can be stored yet.")
    done = models.BooleanField(default=False)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["run", "run_model", "done", "id"], name="shard_waiting")]

    def __str__(self) -> str:
        return f"cases {self.first} to {self.last} for {self.run_model}"


class RunTag(models.Model):
    """A word that people gave a run, to find it again."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="tags", db_index=False)
    name = models.CharField(max_length=40, db_index=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="tag_once_per_run")]

    def __str__(self) -> str:
        return self.name


class TeamSpend(models.Model):
    """US dollars that a run has spent of the quota of its team in one month, or that its processes may spend.

    It is kept when the run is removed, and with the earlier team when the run is moved. One further row of each team
    and month has what role models of episodes have cost.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="+", db_index=False)
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="+", db_index=False)
    month = models.DateField(help_text="Its first day, in UTC.")
    usd = models.FloatField(default=0.0)
    of_episodes = models.BooleanField(default=False, help_text="Of the episodes of the team, not of a run.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "team", "month"], name="one_spend_per_month"),
            models.UniqueConstraint(
                fields=["team", "month"], condition=models.Q(of_episodes=True), name="one_spend_of_episodes"
            ),
        ]
        indexes = [models.Index(fields=["team", "month"], name="spend_of_team")]

    def __str__(self) -> str:
        return f"{self.team} in {self.month:%B %Y}"
