"""The workflow that makes judgments: pairs, who has which seat at them, calls of the judge, attention checks."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from hub.common.fields import OrderedJSONField
from hub.models import Case
from preferences.models import Preference
from runs.models import Response, Run


class Pair(models.Model):
    """Two responses of one run to the same case, to be judged. `position` orders the queue, drawn by the run's seed.

    `overlap` people are to decide it; `free` of those seats are neither taken nor decided.
    """

    class Kind(models.TextChoices):
        BOTH_PASS = "both_pass", "both pass"
        BOTH_FAIL = "both_fail", "both fail"
        ONE_PASSES = "one_passes", "exactly one passes"

    run = models.ForeignKey(Run, models.CASCADE, related_name="pairs")
    case = models.ForeignKey(Case, models.PROTECT, related_name="+")
    first = models.ForeignKey(Response, models.CASCADE, related_name="+")
    second = models.ForeignKey(Response, models.CASCADE, related_name="+")
    kind = models.CharField(max_length=12, choices=Kind)
    position = models.BigIntegerField()
    overlap = models.PositiveSmallIntegerField(default=0, help_text="How many people decide it; 0: not for review.")
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


class Assignment(models.Model):
    """A reviewer's seat at a pair. Held while `open` and within its lease; one row for each reviewer and pair.

    A reviewer has one open seat at most: taking another one gives the first back, which keeps its draft.
    """

    class State(models.TextChoices):
        OPEN = "open", "open"
        DONE = "done", "done"
        SKIPPED = "skipped", "skipped"
        LAPSED = "lapsed", "lapsed"

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="assignments")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    seat = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=8, choices=State, default=State.OPEN)
    lease_until = models.DateTimeField()
    swapped = models.BooleanField(help_text="Whether the pair's second response is shown as A.")
    hides_suggestion = models.BooleanField(default=False, help_text="The suggestion is shown after a first verdict.")
    suggestion_seen_at = models.DateTimeField(null=True, blank=True)
    first_verdict = models.CharField(max_length=8, blank=True)
    draft = OrderedJSONField(default=dict, blank=True)
    skip_reason = models.CharField(max_length=400, blank=True)
    preference = models.OneToOneField(Preference, models.SET_NULL, null=True, blank=True, related_name="assignment")
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pair", "reviewer"], name="one_seat_per_reviewer"),
            models.UniqueConstraint(fields=["reviewer"], condition=Q(state="open"), name="one_open_seat_per_reviewer"),
            models.UniqueConstraint(fields=["pair", "seat"], condition=Q(state__in=["open", "done"]), name="one_seat"),
        ]
        indexes = [
            models.Index(fields=["lease_until"], condition=Q(state="open"), name="assignment_lease"),
            models.Index(fields=["reviewer", "state", "finished_at"], name="assignment_of_reviewer"),
        ]

    def __str__(self) -> str:
        return f"seat {self.seat} of pair {self.pair_id}"


class AttentionCheck(models.Model):
    """A deliberately wrong suggestion shown at one seat. `accepted` is set by the first verdict given there."""

    assignment = models.OneToOneField(Assignment, models.CASCADE, related_name="check_shown")
    wrong_verdict = models.CharField(max_length=8, choices=Preference.Verdict)
    accepted = models.BooleanField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"check at {self.assignment_id}"


class JudgeCall(models.Model):
    """One order of a pair before one judge: what was said, what could be used of it, what it cost."""

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="judge_calls")
    judge = models.CharField(max_length=120)
    fingerprint = models.CharField(max_length=64)
    prompt_version = models.CharField(max_length=32)
    swapped = models.BooleanField(help_text="Whether the pair's second response was shown as A.")
    saw_evidence = models.BooleanField()
    answer = OrderedJSONField(null=True, help_text="The judgment as parsed; null where no answer could be used.")
    text = models.TextField(blank=True, help_text="The model's last words, as they were.")
    problem = models.TextField(blank=True)
    replies = models.PositiveSmallIntegerField(default=0)
    struck = models.PositiveSmallIntegerField(default=0, help_text="Quotes that are not in the response.")
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cost_usd = models.FloatField(default=0.0, null=True, help_text="Null where it is not known.")
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
    """What reviewers are asked to look for; the newest active one is shown beside every pair."""

    title = models.CharField(max_length=120)
    text = models.TextField(help_text="Markdown.")
    active = models.BooleanField(default=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = [F("updated_at").desc()]

    def __str__(self) -> str:
        return self.title
