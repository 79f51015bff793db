"""Models of the review workflow: pairs, assignments of reviewers, judge calls, attention checks and guidelines."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from hub.common.fields import OrderedJSONField
from hub.common.leases import Leased
from hub.models import Case
from preferences.models import Preference
from preferences.sides import Side
from runs.models import Response, Run


class Pair(models.Model):
    """Two responses of one run to the same case, to be judged.

    `position` is the pair's place in the queue, drawn from the run's seed. `overlap` reviewers decide the pair; `free`
    counts its slots that are neither assigned nor decided.
    """

    class Kind(models.TextChoices):
        BOTH_PASS = "both_pass", "both pass"
        BOTH_FAIL = "both_fail", "both fail"
        ONE_PASSES = "one_passes", "exactly one passes"

    run = models.ForeignKey(Run, models.CASCADE, related_name="pairs", db_index=False)
    case = models.ForeignKey(Case, models.PROTECT, related_name="+")
    first = models.ForeignKey(Response, models.CASCADE, related_name="+", db_index=False)
    second = models.ForeignKey(Response, models.CASCADE, related_name="+")
    kind = models.CharField(max_length=12, choices=Kind)
    position = models.BigIntegerField()
    overlap = models.PositiveSmallIntegerField(
        default=0, help_text="Number of reviewers who decide the pair; 0: not for review."
    )
    free = models.PositiveSmallIntegerField(default=0)
    suggestion = models.ForeignKey(Preference, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["position"]
        permissions = [("decide_pair", "Can review pairs of responses")]
        constraints = [models.UniqueConstraint(fields=["first", "second"], name="one_pair_of_two_responses")]
        indexes = [
            models.Index(fields=["run", "position", "id"], condition=Q(free__gt=0), name="pair_waiting"),
            models.Index(fields=["run", "kind"], name="pair_run_kind"),
        ]

    def __str__(self) -> str:
        return f"pair {self.pk}"

    @property
    def judged_blind(self) -> bool:
        """Whether the judge is not shown the scoring results, because they name the winner: exactly one side passes."""
        return self.kind == self.Kind.ONE_PASSES

    def response(self, side: Side) -> Response:
        """Return the response on *side*."""
        return self.first if side == "first" else self.second


class Assignment(Leased):
    """Assignment of a pair to a reviewer, held by a lease while it is open; one row for each reviewer and pair.

    A reviewer has at most one open assignment. Claiming another pair releases it and keeps its draft.
    """

    class State(models.TextChoices):
        OPEN = "open", "open"
        DONE = "done", "done"
        SKIPPED = "skipped", "skipped"
        LAPSED = "lapsed", "lapsed"

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="assignments", db_index=False)
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False)
    slot = models.PositiveSmallIntegerField(help_text="From 0 to the overlap of the pair minus 1.")
    state = models.CharField(max_length=8, choices=State, default=State.OPEN)
    lease_owner = models.CharField(
        max_length=100, blank=True, help_text="`reviewer:<id>` while the assignment is open, else empty."
    )
    swapped = models.BooleanField(help_text="Whether the second response of the pair is shown as A.")
    hides_suggestion = models.BooleanField(
        default=False, help_text="The suggestion is shown only after a first verdict."
    )
    suggestion_seen_at = models.DateTimeField(null=True, blank=True)
    first_verdict = models.CharField(max_length=8, blank=True)
    draft = OrderedJSONField(default=dict, blank=True)
    skip_reason = models.CharField(max_length=400, blank=True)
    preference = models.OneToOneField(Preference, models.SET_NULL, null=True, blank=True, related_name="assignment")
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pair", "reviewer"], name="one_assignment_per_pair_and_reviewer"),
            models.UniqueConstraint(
                fields=["reviewer"], condition=Q(state="open"), name="one_open_assignment_per_reviewer"
            ),
            models.UniqueConstraint(
                fields=["pair", "slot"], condition=Q(state__in=["open", "done"]), name="one_assignment_per_slot"
            ),
        ]
        indexes = [
            models.Index(fields=["lease_until"], condition=Q(state="open"), name="assignment_lease"),
            models.Index(fields=["reviewer", "state", "finished_at"], name="assignment_of_reviewer"),
        ]

    def __str__(self) -> str:
        return f"assignment of pair {self.pair_id} to {self.reviewer_id}"

    @property
    def holder(self) -> str:
        """The owner of the lease while the assignment is open."""
        return f"reviewer:{self.reviewer_id}"


class AttentionCheck(models.Model):
    """Deliberately wrong suggestion shown for one assignment.

    `accepted` says whether the first verdict followed it. It is null until that verdict is given.
    """

    assignment = models.OneToOneField(Assignment, models.CASCADE, related_name="check_shown")
    wrong_verdict = models.CharField(max_length=8, choices=Preference.Verdict)
    accepted = models.BooleanField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"attention check of assignment {self.assignment_id}"


class JudgeCall(models.Model):
    """Call of a judge model for one order of a pair, with its answer, usage and cost."""

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="judge_calls", db_index=False)
    judge = models.CharField(max_length=120)
    fingerprint = models.CharField(max_length=64)
    prompt_version = models.CharField(max_length=32)
    swapped = models.BooleanField(help_text="Whether the second response of the pair was shown as A.")
    saw_evidence = models.BooleanField()
    answer = OrderedJSONField(null=True, help_text="The parsed judgment; null if no reply could be parsed.")
    text = models.TextField(blank=True, help_text="The text of the last reply.")
    problem = models.TextField(blank=True)
    replies = models.PositiveSmallIntegerField(default=0)
    struck = models.PositiveSmallIntegerField(default=0, help_text="Number of quotes that are not in the response.")
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cost_usd = models.FloatField(default=0.0, null=True, help_text="Null if the cost is unknown.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["pair", "fingerprint", "prompt_version", "swapped"], name="one_call_per_order"
            )
        ]

    def __str__(self) -> str:
        return f"{self.judge} on pair {self.pair_id}"


class Guideline(models.Model):
    """Instructions for reviewers; the most recently changed active guideline is shown with each pair."""

    title = models.CharField(max_length=120)
    text = models.TextField(help_text="Markdown.")
    active = models.BooleanField(default=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = [F("updated_at").desc()]

    def __str__(self) -> str:
        return self.title
