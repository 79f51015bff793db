"""Database models of runs: responses, scores, cached model calls, registered models, and episodes of trainers."""

import re
import uuid
from datetime import datetime

from django.conf import settings
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import QuerySet
from django.utils import timezone

from hub.common.fields import LargeJSONField, LargeTextField, OrderedJSONField
from hub.common.leases import Leased
from hub.models import Case, EnvironmentVersion, Team, TeamOwned

NOTE_LENGTH = 4000
_SCORES_TOGETHER = 1000  # responses whose scores have their files in one folder
_NUMBER = re.compile("[0-9]{1,18}")


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


class TeamSpend(models.Model):
    """US dollars that a run has spent of the quota of its team in one month, or that its processes may spend.

    It is kept when the run is removed, and with the earlier team when the run is moved.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="+")
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="+")
    month = models.DateField(help_text="Its first day, in UTC.")
    usd = models.FloatField(default=0.0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "team", "month"], name="one_spend_per_month")]
        indexes = [models.Index(fields=["team", "month"], name="spend_of_team")]

    def __str__(self) -> str:
        return f"{self.team} in {self.month:%B %Y}"


class RunTag(models.Model):
    """A word that people gave a run, to find it again."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="tags")
    name = models.CharField(max_length=40, db_index=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="tag_once_per_run")]

    def __str__(self) -> str:
        return self.name


class RunEnvironment(models.Model):
    """An environment version in a run, and the cases of it that the run evaluates."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="environments")
    version = models.ForeignKey(EnvironmentVersion, models.PROTECT, related_name="+")
    position = models.PositiveSmallIntegerField()
    selection = OrderedJSONField(default=dict, help_text='{}, {"limit": n}, {"sample": n} or {"cases": [ids]}')
    case_positions = OrderedJSONField(
        null=True, help_text="Positions of the selected cases; null means the first case_count cases."
    )
    case_count = models.PositiveIntegerField()

    class Meta:
        ordering = ["run", "position"]
        constraints = [models.UniqueConstraint(fields=["run", "version"], name="version_once_per_run")]

    def __str__(self) -> str:
        return str(self.version)


class RunModel(models.Model):
    """A model in a run: a model under test (`role` is empty), or a model that fills a role (rubric, user, judge)."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="models")
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
        ordering = ["run", "role", "position"]
        constraints = [models.UniqueConstraint(fields=["run", "role", "label"], name="label_once_per_role")]

    def __str__(self) -> str:
        return self.label

    @property
    def priced(self) -> bool:
        """Return whether the cost of its calls is known. Recordings and models without a price have none."""
        return bool(self.spec.get("price"))


class Shard(Leased):
    """Block of cases for one model of a large run. The process that holds its lease requests the missing responses.

    A run has shards from the start of its execution until it ends.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="shards")
    run_environment = models.ForeignKey(RunEnvironment, models.CASCADE, related_name="+")
    run_model = models.ForeignKey(RunModel, models.CASCADE, related_name="+")
    first = models.PositiveIntegerField(help_text="Position of the first case.")
    last = models.PositiveIntegerField(help_text="Position of the last case.")
    reserved_for = models.CharField(
        max_length=100, blank=True, help_text="Who alone may execute it: a command with its local processes."
    )
    fresh = models.BooleanField(default=True, help_text="No response of it can be stored yet.")
    done = models.BooleanField(default=False)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["run_model", "done"], name="shard_open_per_model")]

    def __str__(self) -> str:
        return f"cases {self.first} to {self.last} for {self.run_model}"


class Response(models.Model):
    """Response of one model to one case in one attempt. `messages` is the complete transcript, prompts included.

    Tokens, cost and latency are sums over the calls to the model itself. Calls to role models are in `role_cost_usd`.
    `latency_ms` is null if every reply came from a recording or the cache.
    """

    class Status(models.TextChoices):
        PASSED = "passed", "passed"
        FAILED = "failed", "failed"
        ERRORED = "errored", "errored"
        UNSCORED = "unscored", "unscored"

    # The indexes below begin with these columns, so none has an index of its own.
    run_environment = models.ForeignKey(RunEnvironment, models.CASCADE, related_name="responses", db_index=False)
    run_model = models.ForeignKey(RunModel, models.CASCADE, related_name="responses", db_index=False)
    case = models.ForeignKey(Case, models.PROTECT, related_name="+", db_index=False)
    attempt = models.PositiveSmallIntegerField(default=1)
    seed = models.BigIntegerField(default=0)
    status = models.CharField(max_length=16, choices=Status)
    score = models.FloatField(null=True)
    reason = models.TextField(blank=True, help_text="Why it did not pass, in one sentence.")
    error_kind = models.CharField(max_length=32, blank=True)

    messages = LargeJSONField(default=list)
    text = LargeTextField(blank=True, help_text="Text of the last assistant message, as it was scored.")
    finish_reason = models.CharField(max_length=32, blank=True)
    stop = models.CharField(max_length=16, blank=True, help_text="done, or the limit that ended the episode.")
    truncated = models.BooleanField(default=False, help_text="Cut at the token limit.")
    refused = models.BooleanField(default=False, help_text="Refused, or stopped by a content filter.")

    served_model = models.CharField(
        max_length=200, blank=True, help_text="Name of the model that the endpoint reported with its last reply."
    )
    request_id = models.CharField(
        max_length=200, blank=True, help_text="The endpoint's number of the request of its last reply."
    )
    turns = models.PositiveSmallIntegerField(default=0)
    step_rewards = OrderedJSONField(
        null=True, help_text="Reward of each turn as the harness returned it; null if it returned none."
    )
    input_tokens = models.PositiveIntegerField(default=0)
    cached_input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    reasoning_tokens = models.PositiveIntegerField(default=0)
    latency_ms = models.FloatField(null=True)
    cost_usd = models.FloatField(default=0.0, null=True, help_text="Null if unknown.")
    role_cost_usd = models.FloatField(default=0.0, null=True, help_text="Null if unknown.")

    execution_status = models.CharField(
        max_length=32, blank=True, help_text="Status reported by the sandbox, if code ran."
    )
    execution_ms = models.FloatField(null=True)
    sandbox_tier = models.CharField(max_length=1, blank=True)
    execution_trust = models.CharField(
        max_length=16, blank=True, help_text="isolated, or in_process where tests shared a process with the code."
    )
    host = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["run_model", "case", "attempt"], name="one_response_per_attempt")
        ]
        indexes = [
            models.Index(fields=["run_environment", "run_model", "status"], name="response_cell_status"),
            models.Index(
                fields=["run_environment", "id"], name="response_environment_id"
            ),  # lists of a run's responses
            models.Index(fields=["case", "run_environment", "status"], name="response_case_status"),  # pass rates
        ]

    def __str__(self) -> str:
        return f"response {self.pk}"

    file_folder = "responses"

    def file_stem(self) -> str:
        """Return a folder and the beginning of the names of the files that hold its large values."""
        return f"{self.run_model_id}/{self.case_id}-{self.attempt}"

    @classmethod
    def rows_in_folder(cls, name: str) -> QuerySet["Response"] | None:
        """Return the responses whose files are in the folder *name*."""
        return cls.objects.filter(run_model=int(name)) if _NUMBER.fullmatch(name) else None


class RunResult(models.Model):
    """Result of one model on one environment of a run that has ended, aggregated from the responses.

    A row is current if `revision` is that of the figures (runs/results/stored.py) and `run_finished_at` is when the run
    ended last. A resumed run ends at another time, so its earlier rows are not current any more.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="results")
    run_environment = models.ForeignKey(RunEnvironment, models.CASCADE, related_name="results")
    run_model = models.ForeignKey(RunModel, models.CASCADE, related_name="results")
    run_finished_at = models.DateTimeField()
    revision = models.PositiveSmallIntegerField()
    responses = models.PositiveIntegerField(help_text="Number of responses that count.")
    stored = OrderedJSONField(default=dict, help_text="Number of all responses by status, quarantined cases included.")
    accuracy = models.FloatField(null=True)
    figures = OrderedJSONField(help_text="All figures, as runs.results.figures.CellFigures.")
    cases = OrderedJSONField(
        default=dict, help_text="Results by case, as runs.results.case_results.CaseResults. Only comparisons load them."
    )

    class Meta:
        ordering = ["run_id", "run_environment__position", "run_model__position"]
        constraints = [models.UniqueConstraint(fields=["run_environment", "run_model"], name="one_result_per_cell")]

    def __str__(self) -> str:
        return f"{self.run_model} on {self.run_environment}"


class Score(models.Model):
    """Verdict of one rule on one response. `value` is null if the rule could not decide."""

    response = models.ForeignKey(Response, models.CASCADE, related_name="scores")
    position = models.PositiveSmallIntegerField()
    rule = models.CharField(max_length=64)
    type = models.CharField(max_length=32)
    value = models.FloatField(null=True)
    weight = models.FloatField(default=1.0)
    required = models.BooleanField(default=False)
    reason = models.TextField(blank=True)
    detail = LargeJSONField(default=dict)
    execution = LargeJSONField(null=True, help_text="The sandbox's outcome, where code ran.")

    class Meta:
        ordering = ["response", "position"]
        constraints = [models.UniqueConstraint(fields=["response", "rule"], name="one_score_per_rule")]

    def __str__(self) -> str:
        return f"{self.rule}: {self.value}"

    file_folder = "scores"

    def file_stem(self) -> str:
        """Return a folder and the beginning of the names of the files that hold its large values."""
        return f"{self.response_id // _SCORES_TOGETHER}/{self.response_id}-{self.position}"

    @classmethod
    def rows_in_folder(cls, name: str) -> QuerySet["Score"] | None:
        """Return the scores whose files are in the folder *name*."""
        if not _NUMBER.fullmatch(name):
            return None
        first = int(name) * _SCORES_TOGETHER
        return cls.objects.filter(response__gte=first, response__lt=first + _SCORES_TOGETHER)


class ModelCall(models.Model):
    """Cached reply of a model. `key` digests everything that determines it, attempt and purpose included."""

    key = models.CharField(max_length=64, primary_key=True)
    purpose = models.CharField(max_length=16)
    model = models.CharField(max_length=200)
    message = LargeJSONField()
    finish_reason = models.CharField(max_length=32)
    usage = OrderedJSONField(default=dict)
    served_model = models.CharField(max_length=200, blank=True)
    request_id = models.CharField(max_length=200, blank=True)
    latency_ms = models.FloatField(null=True)
    cost_usd = models.FloatField(default=0.0, null=True)
    paid_by = models.ForeignKey(
        RunModel, models.SET_NULL, null=True, related_name="calls", help_text="The model of the run that paid for it."
    )
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    def __str__(self) -> str:
        return f"{self.purpose} by {self.model}"

    file_folder = "calls"

    def file_stem(self) -> str:
        """Return a folder and the beginning of the name of the file that holds a large `message`."""
        return f"{self.key[:2]}/{self.key}"

    @classmethod
    def rows_in_folder(cls, name: str) -> QuerySet["ModelCall"] | None:
        """Return the calls whose files are in the folder *name*."""
        return cls.objects.filter(key__startswith=name) if len(name) == 2 else None


# The name is part of a URL path (/models/<name>/), so it must not contain empty or relative path segments.
endpoint_name_is_valid = RegexValidator(
    r"\A\w(?!.*(?://|/\.{1,2}(?:/|\Z)))[\w.:/@+~-]*(?<!/)\Z",
    "Enter a valid name such as gpt-4.1-mini or org/model:free: letters, digits and . : / @ + ~ _ -, a letter or digit "
    "first, and no slash at the end.",
)


class ModelEndpoint(TeamOwned):
    """A registered model. Runs that start on the web or over REST can only use registered models."""

    name = models.CharField(max_length=120, unique=True, validators=[endpoint_name_is_valid])
    provider = models.CharField(max_length=32, default="openai")
    model = models.CharField(max_length=200, help_text="Name of the model at the endpoint.")
    # Not a URLField: it rejects host names of one word, which services in a compose file have.
    base_url = models.CharField(
        max_length=300, blank=True, help_text="Leave empty for the default address of the provider."
    )
    api_key_env = models.CharField(
        max_length=64, blank=True, help_text="Name of the variable that holds the key, never the key itself."
    )
    family = models.CharField(
        max_length=64, blank=True, help_text="Verdicts of a judge model on models of its own family are marked."
    )
    parameters = OrderedJSONField(default=dict, blank=True)
    price_input = models.FloatField(null=True, blank=True, help_text="USD per million input tokens")
    price_cached_input = models.FloatField(null=True, blank=True, help_text="USD per million cached input tokens")
    price_output = models.FloatField(null=True, blank=True, help_text="USD per million output tokens")
    requests_per_minute = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="Leave empty for no limit."
    )
    tokens_per_minute = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="Leave empty for no limit."
    )
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class EpisodeCheckpoint(models.Model):
    """State of an episode of a run after its latest turn, so that another process can continue it.

    Removed when the response is stored. `totals` are the tokens, costs and times of its calls so far.
    """

    run_environment = models.ForeignKey(RunEnvironment, models.CASCADE, related_name="+")
    run_model = models.ForeignKey(RunModel, models.CASCADE, related_name="checkpoints")
    case = models.ForeignKey(Case, models.CASCADE, related_name="+")
    attempt = models.PositiveSmallIntegerField(default=1)
    state = LargeJSONField(default=dict)
    totals = OrderedJSONField(default=dict)
    updated_at = models.DateTimeField(auto_now=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run_model", "case", "attempt"], name="checkpoint_once")]

    def __str__(self) -> str:
        return f"checkpoint of case {self.case_id}, attempt {self.attempt}"

    file_folder = "checkpoints"

    def file_stem(self) -> str:
        """Return a folder and the beginning of the name of the file that holds a large `state`."""
        return f"{self.run_model_id}/{self.case_id}-{self.attempt}"

    @classmethod
    def rows_in_folder(cls, name: str) -> QuerySet["EpisodeCheckpoint"] | None:
        """Return the checkpoints whose files are in the folder *name*."""
        return cls.objects.filter(run_model=int(name)) if _NUMBER.fullmatch(name) else None


class EpisodeSession(Leased):
    """Episode that a trainer drives over REST. The row holds its complete state, so any process can take the next step.

    `revision` counts the steps. The request that executes a step holds the lease. A step is stored only if no other
    step was stored since it read the row.
    `calls` holds the replies of role models (simulated users, judges), so that the episode can be replayed.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    case = models.ForeignKey(Case, models.CASCADE, related_name="+")
    seed = models.BigIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=1)
    model = models.CharField(max_length=120, blank=True, help_text="Label that the trainer gave its policy.")
    roles = OrderedJSONField(default=dict, help_text="Role -> names of registered models.")
    state = LargeJSONField(default=dict)
    calls = LargeJSONField(default=list)
    recordings = LargeJSONField(default=list, help_text="Replies of role models in an earlier episode, to be replayed.")
    usage = OrderedJSONField(default=list, help_text="Token counts of each step; null if the trainer sent none.")
    tokens = LargeJSONField(
        default=list, help_text="Token ids and log-probabilities of each step; null if the trainer sent none."
    )
    group = models.CharField(max_length=32, blank=True, help_text="Id that the episodes of one group of a batch share.")
    revision = models.PositiveIntegerField(default=0)
    last_answer = LargeJSONField(null=True, help_text="Answer to the latest step or finish, for repeated requests.")
    pending = OrderedJSONField(
        null=True, help_text="Turn and request of the step that is executed, and its error if it has failed."
    )
    done = models.BooleanField(default=False)
    truncated = models.BooleanField(default=False)
    reward = models.FloatField(default=0.0)
    score = OrderedJSONField(null=True, help_text="Status and rules, once done.")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["user", "done", "expires_at"], name="session_open_per_user")]

    def __str__(self) -> str:
        return f"episode {self.id}"

    file_folder = "episodes"

    def file_stem(self) -> str:
        """Return a folder and the beginning of the names of the files that hold its large values."""
        return f"{self.id.hex[:2]}/{self.id.hex}"

    @classmethod
    def rows_in_folder(cls, name: str) -> QuerySet["EpisodeSession"] | None:
        """Return the episodes whose files are in the folder *name*."""
        if not re.fullmatch("[0-9a-f]{2}", name):
            return None
        first, last = (uuid.UUID(name + digit * 30) for digit in "0f")
        return cls.objects.filter(pk__gte=first, pk__lte=last)
