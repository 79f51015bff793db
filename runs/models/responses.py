"""What a run stores: responses, their scores, and the results that are aggregated from them."""

from django.db import models
from django.db.models import QuerySet

from hub.common.fields import LargeJSONField, LargeTextField, OrderedJSONField
from hub.common.unused_files import folder_number
from hub.models import Case
from hub.protocols.messages import Message, count_prompt_messages
from runs.models.runs import Run, RunEnvironment, RunModel

_SCORES_TOGETHER = 1000  # responses whose scores have their files in one folder


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
    prompt_messages = models.PositiveIntegerField(
        null=True, help_text="Number of messages before the model's first; null if it was not recorded."
    )
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

    @property
    def first_answer(self) -> int:
        """Return the index of the model's first message; the number of messages if it said nothing.

        Assistant messages before it are examples in the prompt.
        """
        return count_prompt_messages(self.messages, self.prompt_messages)

    @property
    def prompt(self) -> list[Message]:
        """Return the messages before the model's first."""
        return list(self.messages[: self.first_answer])

    @property
    def answer(self) -> list[Message]:
        """Return the model's first message and all after it: further ones, results of tools, users' replies."""
        return list(self.messages[self.first_answer :])

    file_folder = "responses"

    def file_stem(self) -> str:
        """Return a folder and the beginning of the names of the files that hold its large values."""
        return f"{self.run_model_id}/{self.case_id}-{self.attempt}"

    @classmethod
    def rows_in_folder(cls, name: str) -> QuerySet["Response"] | None:
        """Return the responses whose files are in the folder *name*."""
        number = folder_number(name)
        return None if number is None else cls.objects.filter(run_model=number)


class Score(models.Model):
    """Verdict of one rule on one response. `value` is null if the rule could not decide."""

    response = models.ForeignKey(Response, models.CASCADE, related_name="scores", db_index=False)
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
        ordering = ["response_id", "position"]  # by the column: "response" would join its table
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
        number = folder_number(name)
        if number is None:
            return None
        first = number * _SCORES_TOGETHER
        return cls.objects.filter(response__gte=first, response__lt=first + _SCORES_TOGETHER)


class RunResult(models.Model):
    """Result of one model on one environment of a run that has ended, aggregated from the responses.

    A row is current if `revision` is that of the figures (runs/results/stored.py) and `run_finished_at` is when the run
    ended last. A resumed run ends at another time, so its earlier rows are not current any more.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="results")
    run_environment = models.ForeignKey(RunEnvironment, models.CASCADE, related_name="results", db_index=False)
    run_model = models.ForeignKey(RunModel, models.CASCADE, related_name="results")
    run_finished_at = models.DateTimeField()
    revision = models.PositiveSmallIntegerField()
    responses = models.PositiveIntegerField(help_text="Number of responses that count.")
    stored = OrderedJSONField(default=dict, help_text="Number of all responses by status, quarantined cases included.")
    accuracy = models.FloatField(null=True)
    incomplete = models.BooleanField(
        default=False, help_text="Whether too few responses are scored for the accuracy to be final."
    )
    figures = OrderedJSONField(help_text="All figures, as runs.results.figures.CellFigures.")
    cases = OrderedJSONField(
        default=dict, help_text="Results by case, as runs.results.case_results.CaseResults. Only comparisons load them."
    )

    class Meta:
        ordering = ["run_id", "run_environment__position", "run_model__position"]
        constraints = [models.UniqueConstraint(fields=["run_environment", "run_model"], name="one_result_per_cell")]

    def __str__(self) -> str:
        return f"{self.run_model} on {self.run_environment}"
