"""Runs and all they store: models, responses, scores, the cache of model calls, registered endpoints."""

import uuid

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

from hub.common.fields import OrderedJSONField
from hub.common.leases import Leased
from hub.models import Case, EnvironmentVersion


class Run(Leased):
    """One evaluation: a config, what it played, and where its tracking lives."""

    class Status(models.TextChoices):
        QUEUED = "queued", "queued"
        RUNNING = "running", "running"
        COMPLETED = "completed", "completed"
        INTERRUPTED = "interrupted", "interrupted"
        STOPPED = "stopped", "stopped by its budget"
        CANCELLED = "cancelled", "cancelled"
        FAILED = "failed", "failed"

    name = models.CharField(max_length=120, db_index=True)
    status = models.CharField(max_length=16, choices=Status, default=Status.QUEUED, db_index=True)
    message = models.TextField(blank=True, help_text="Why it ended, where it did not simply complete.")
    config = OrderedJSONField(help_text="The config as it was validated, variables filled in, no credentials.")
    config_hash = models.CharField(max_length=64, db_index=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    played_at = models.DateTimeField(
        null=True, blank=True, help_text="When its last response was stored; judging and tracking follow."
    )
    seconds = models.FloatField(default=0.0, help_text="Wall time over all its sittings, in seconds.")
    cost_usd = models.FloatField(default=0.0, null=True, help_text="Null where a part of it is not known.")
    host = OrderedJSONField(default=dict, help_text="Machine, Python and package versions.")
    tracking = OrderedJSONField(default=dict, help_text='{"state": off|pending|logged, "parent": id, "cells": {...}}')
    summaries = OrderedJSONField(default=dict, help_text="What each later stage reported, by its config key.")

    cancel_requested = models.BooleanField(default=False)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.name} (run {self.pk})"


# Statuses of runs that no process executes or will execute without a person asking for it.
ENDED = [
    Run.Status.COMPLETED,
    Run.Status.INTERRUPTED,
    Run.Status.STOPPED,
    Run.Status.CANCELLED,
    Run.Status.FAILED,
]


class RunEnvironment(models.Model):
    """An environment version within a run, and which of its cases were chosen."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="environments")
    version = models.ForeignKey(EnvironmentVersion, models.PROTECT, related_name="+")
    position = models.PositiveSmallIntegerField()
    selection = OrderedJSONField(default=dict, help_text='{}, {"limit": n}, {"sample": n} or {"cases": [ids]}')
    chosen = OrderedJSONField(null=True, help_text="Positions of the chosen cases; null means the first case_count.")
    case_count = models.PositiveIntegerField()

    class Meta:
        ordering = ["run", "position"]
        constraints = [models.UniqueConstraint(fields=["run", "version"], name="version_once_per_run")]

    def __str__(self) -> str:
        return str(self.version)


class RunModel(models.Model):
    """A model within a run: one that answers (`role` empty), or one that fills a role (rubric, user, judge)."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="models")
    label = models.CharField(max_length=120)
    role = models.CharField(max_length=64, blank=True)
    seat = models.PositiveSmallIntegerField(default=0)
    position = models.PositiveSmallIntegerField()
    provider = models.CharField(max_length=32)
    spec = OrderedJSONField(help_text="The model as configured; api_key_env is a variable's name, never a key.")
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of all that decides its answers.")
    stopped = models.TextField(blank=True, help_text="Why it was asked no further (a wrong key, an unknown model).")

    class Meta:
        ordering = ["run", "role", "position"]
        constraints = [models.UniqueConstraint(fields=["run", "role", "label"], name="label_once_per_role")]

    def __str__(self) -> str:
        return self.label

    @property
    def priced(self) -> bool:
        """Whether its calls have a known cost: a recording has none, nor has a model without a price."""
        return bool(self.spec.get("price"))


class Response(models.Model):
    """One play of one case by one model. `messages` is the whole transcript, prompts included.

    Tokens, cost and latency are sums over the model's own calls; calls to role models are in `role_cost_usd`.
    `latency_ms` is null where every call came from a recording or the cache.
    """

    class Status(models.TextChoices):
        PASSED = "passed", "passed"
        FAILED = "failed", "failed"
        ERRORED = "errored", "errored"
        UNSCORED = "unscored", "unscored"

    run_environment = models.ForeignKey(RunEnvironment, models.CASCADE, related_name="responses")
    run_model = models.ForeignKey(RunModel, models.CASCADE, related_name="responses")
    case = models.ForeignKey(Case, models.PROTECT, related_name="+")
    attempt = models.PositiveSmallIntegerField(default=1)
    seed = models.BigIntegerField(default=0)
    status = models.CharField(max_length=16, choices=Status)
    score = models.FloatField(null=True)
    reason = models.TextField(blank=True, help_text="Why it did not pass, in one sentence.")
    error_kind = models.CharField(max_length=32, blank=True)

    messages = OrderedJSONField(default=list)
    text = models.TextField(blank=True, help_text="The last answer, as it was scored.")
    finish_reason = models.CharField(max_length=32, blank=True)
    stop = models.CharField(max_length=16, blank=True, help_text="done, or the limit that ended the episode.")
    truncated = models.BooleanField(default=False, help_text="Cut at the token limit.")
    refused = models.BooleanField(default=False, help_text="Refused, or stopped by a content filter.")

    turns = models.PositiveSmallIntegerField(default=0)
    input_tokens = models.PositiveIntegerField(default=0)
    cached_input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    reasoning_tokens = models.PositiveIntegerField(default=0)
    latency_ms = models.FloatField(null=True)
    cost_usd = models.FloatField(default=0.0, null=True, help_text="Null where it is not known.")
    role_cost_usd = models.FloatField(default=0.0, null=True, help_text="Null where it is not known.")

    execution_status = models.CharField(max_length=32, blank=True, help_text="The sandbox's word, where code ran.")
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
        indexes = [models.Index(fields=["run_environment", "run_model", "status"], name="response_cell_status")]

    def __str__(self) -> str:
        return f"response {self.pk}"


class Score(models.Model):
    """One rule's verdict on one response. `value` is null where the rule could not decide."""

    response = models.ForeignKey(Response, models.CASCADE, related_name="scores")
    position = models.PositiveSmallIntegerField()
    rule = models.CharField(max_length=64)
    type = models.CharField(max_length=32)
    value = models.FloatField(null=True)
    weight = models.FloatField(default=1.0)
    required = models.BooleanField(default=False)
    reason = models.TextField(blank=True)
    detail = OrderedJSONField(default=dict)
    execution = OrderedJSONField(null=True, help_text="The sandbox's outcome, where code ran.")

    class Meta:
        ordering = ["response", "position"]
        constraints = [models.UniqueConstraint(fields=["response", "rule"], name="one_score_per_rule")]

    def __str__(self) -> str:
        return f"{self.rule}: {self.value}"


class ModelCall(models.Model):
    """The cache: one answered model call. `key` digests all that decides the answer, the attempt and the purpose."""

    key = models.CharField(max_length=64, primary_key=True)
    purpose = models.CharField(max_length=16)
    model = models.CharField(max_length=200)
    message = OrderedJSONField()
    finish_reason = models.CharField(max_length=32)
    usage = OrderedJSONField(default=dict)
    latency_ms = models.FloatField(null=True)
    cost_usd = models.FloatField(default=0.0, null=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    def __str__(self) -> str:
        return f"{self.purpose} by {self.model}"


# A name is part of an address (/models/<name>/), so it has no empty and no relative step in it.
endpoint_name_is_valid = RegexValidator(
    r"\A\w(?!.*(?://|/\.{1,2}(?:/|\Z)))[\w.:/@+~-]*(?<!/)\Z",
    "Enter a valid name such as gpt-4.1-mini or org/model:free: letters, digits and . : / @ + ~ _ -, a letter or digit "
    "first, and no slash at the end.",
)


class ModelEndpoint(models.Model):
    """A model that curators have registered: the only kind that the web and REST may name."""

    name = models.CharField(max_length=120, unique=True, validators=[endpoint_name_is_valid])
    provider = models.CharField(max_length=32, default="openai")
    model = models.CharField(max_length=200, help_text="The name that the endpoint knows it by.")
    # Not a URLField, which refuses a name of one word, as services of a compose file have.
    base_url = models.CharField(max_length=300, blank=True, help_text="Empty: the provider's own address.")
    api_key_env = models.CharField(max_length=64, blank=True, help_text="The variable with the key, never the key.")
    family = models.CharField(max_length=64, blank=True, help_text="Judging within one family is marked as such.")
    parameters = OrderedJSONField(default=dict, blank=True)
    price_input = models.FloatField(null=True, blank=True, help_text="USD per million input tokens")
    price_cached_input = models.FloatField(null=True, blank=True, help_text="USD per million cached input tokens")
    price_output = models.FloatField(null=True, blank=True, help_text="USD per million output tokens")
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class EpisodeSession(models.Model):
    """An episode driven from outside, over REST. Its whole state is here, so that any worker can take a step.

    `revision` counts steps and guards them: a step writes only where nobody else has stepped since it read.
    `calls` holds the answers of role models (simulated users, judges), so that the episode can be replayed.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    case = models.ForeignKey(Case, models.CASCADE, related_name="+")
    seed = models.BigIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=1)
    model = models.CharField(max_length=120, blank=True, help_text="The label that the trainer gave its policy.")
    roles = OrderedJSONField(default=dict, help_text="Role -> names of registered models.")
    state = OrderedJSONField(default=dict)
    calls = OrderedJSONField(default=list)
    recordings = OrderedJSONField(default=list, help_text="What role models said in an earlier play, to be said again.")
    usage = OrderedJSONField(default=list, help_text="Tokens of each step, null where the trainer sent none.")
    revision = models.PositiveIntegerField(default=0)
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
