"""Judgments as data: preferences between two responses, the issues marked in them, and the issues' categories.

Preferences are append-only: a change adds a row that supersedes the old one, and nothing is ever rewritten.
"""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from hub.common.fields import OrderedJSONField
from hub.models import Case, CaseDefect, EnvironmentVersion
from preferences.sides import worded
from runs.models import Response, Run


class IssueCategory(models.Model):
    """What can be wrong with an answer. Curators edit the list; a category in use is retired, not deleted."""

    slug = models.SlugField(max_length=40, unique=True)
    title = models.CharField(max_length=80)
    description = models.CharField(max_length=300, blank=True, help_text="When to choose it; judges read this too.")
    active = models.BooleanField(default=True)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["position", "slug"]
        verbose_name_plural = "issue categories"

    def __str__(self) -> str:
        return self.title


class AppendOnly(ValueError):
    """Something tried to change a row that is only ever superseded."""


class Preference(models.Model):
    """One verdict on two responses to the same case. `first` and `second` are the pair's order, not the screen's.

    `evidence` is what execution found of both sides when the verdict was given; the digests pin what was asked.
    """

    class Source(models.TextChoices):
        HUMAN = "human", "human"
        LLM = "llm", "judge model"
        EXECUTION = "execution", "execution"

    class Verdict(models.TextChoices):
        FIRST = "first", "first is better"
        SECOND = "second", "second is better"
        TIE = "tie", "tie"
        BOTH_BAD = "both_bad", "both bad"

    class Check(models.TextChoices):
        NONE = "", "no check"
        PASSED = "passed", "passed"
        FAILED = "failed", "accepted a wrong suggestion"

    first = models.ForeignKey(Response, models.PROTECT, related_name="preferences_as_first")
    second = models.ForeignKey(Response, models.PROTECT, related_name="preferences_as_second")
    verdict = models.CharField(max_length=8, choices=Verdict)
    source = models.CharField(max_length=10, choices=Source, db_index=True)
    critique = models.TextField(blank=True, help_text="Names the responses by the tokens of preferences.sides.")
    confidence = models.FloatField(null=True, blank=True, help_text="From 0 to 1, where the judge gave one.")

    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    judge = models.CharField(max_length=120, blank=True, help_text="The judge model's label.")
    judge_fingerprint = models.CharField(max_length=64, blank=True)
    prompt_version = models.CharField(max_length=32, blank=True)
    order_sensitive = models.BooleanField(default=False, help_text="The judge's two orders disagreed.")
    orders = OrderedJSONField(
        default=list, blank=True, help_text="The judge's verdict with the first response shown first, then second."
    )
    order_critiques = OrderedJSONField(
        default=list, blank=True, help_text="What the judge wrote in each of the two orders."
    )
    saw_evidence = models.BooleanField(default=False, help_text="Whether what execution found was shown.")
    self_preference = models.BooleanField(default=False, help_text="The judge is of one side's model family.")

    suggestion = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="answers")
    suggestion_taken = models.BooleanField(null=True, help_text="Accepted (true) or overridden; null: none was seen.")
    suggestion_seen_at = models.DateTimeField(null=True, blank=True)
    first_verdict = models.CharField(
        max_length=8, blank=True, choices=Verdict, help_text="The verdict given while the suggestion was hidden."
    )
    dismissed = OrderedJSONField(default=list, help_text="Ids of the judge's issues that the reviewer dismissed.")
    check_result = models.CharField(max_length=8, blank=True, choices=Check, default=Check.NONE)
    disputes_tests = models.BooleanField(default=False, help_text="Overrules execution, with a defect filed.")
    defect = models.ForeignKey(
        CaseDefect, models.SET_NULL, null=True, blank=True, related_name="+", help_text="The claim that it rests on."
    )

    run = models.ForeignKey(Run, models.PROTECT, related_name="preferences")
    version = models.ForeignKey(EnvironmentVersion, models.PROTECT, related_name="+")
    case = models.ForeignKey(Case, models.PROTECT, related_name="+")
    input_digest = models.CharField(max_length=64)
    scoring_digest = models.CharField(max_length=64)
    config_hash = models.CharField(max_length=64)
    evidence = OrderedJSONField(default=dict)
    seconds = models.FloatField(null=True, blank=True, help_text="Time spent on the verdict.")
    supersedes = models.OneToOneField("self", models.PROTECT, null=True, blank=True, related_name="successor")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["run", "source"], name="preference_run_source"),
            models.Index(fields=["first", "second"], name="preference_pair"),
        ]
        constraints = [
            models.CheckConstraint(condition=~Q(first=models.F("second")), name="preference_of_two_responses"),
        ]

    def __str__(self) -> str:
        return f"preference {self.pk}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnly("A preference is never changed; record one that supersedes it.")
        super().save(*args, **kwargs)

    @property
    def tests_found_wrong(self) -> bool:
        """Whether a curator has accepted a defect of the case; `selectors.with_everything` brings it along."""
        annotated = self.__dict__.get("case_found_wrong")
        if annotated is None:
            return self.case.defects.filter(status=CaseDefect.Status.ACCEPTED).exists()
        return bool(annotated)

    @property
    def decisive(self) -> bool:
        return self.verdict in (self.Verdict.FIRST, self.Verdict.SECOND)

    @property
    def chosen(self) -> Response | None:
        """The better response; None for a tie and for both bad."""
        return {"first": self.first, "second": self.second}.get(self.verdict) if self.decisive else None

    @property
    def rejected(self) -> Response | None:
        return {"first": self.second, "second": self.first}.get(self.verdict) if self.decisive else None

    def worded(self, text: str) -> str:
        """*text* of this preference with its side tokens as chosen and rejected response, or first and second."""
        if not self.decisive:
            return worded(text)
        better, worse = "the chosen response", "the rejected response"
        first, second = (better, worse) if self.verdict == self.Verdict.FIRST else (worse, better)
        return worded(text, first=first, second=second)


class Issue(models.Model):
    """Something wrong in one response: a span of one of its messages, or the whole (`start` null).

    `start` and `end` count Unicode code points in `messages[message]["content"]`, or, with `call`, in the text of that
    tool call of the message (`preferences.spans.call_text`). Quote, prefix and suffix are the W3C text-quote selector
    of the same place, and `text_hash` the SHA-256 of the text they were taken from.
    """

    class Severity(models.TextChoices):
        MINOR = "minor", "minor"
        MAJOR = "major", "major"
        CRITICAL = "critical", "critical"

    preference = models.ForeignKey(Preference, models.PROTECT, related_name="issues")
    response = models.ForeignKey(Response, models.PROTECT, related_name="issues")
    category = models.ForeignKey(IssueCategory, models.PROTECT, related_name="+")
    severity = models.CharField(max_length=10, choices=Severity, default=Severity.MAJOR)
    note = models.TextField(blank=True, help_text="Names the responses by the tokens of preferences.sides.")
    message = models.PositiveIntegerField(default=0)
    call = models.PositiveSmallIntegerField(null=True, blank=True, help_text="The tool call of the message, if in one.")
    start = models.PositiveIntegerField(null=True)
    end = models.PositiveIntegerField(null=True)
    quote = models.TextField(blank=True)
    prefix = models.CharField(max_length=64, blank=True)
    suffix = models.CharField(max_length=64, blank=True)
    text_hash = models.CharField(max_length=64, blank=True)
    kept_from = models.ForeignKey("self", models.PROTECT, null=True, related_name="kept")

    class Meta:
        ordering = ["response", "message", "start", "id"]

    def __str__(self) -> str:
        return f"{self.category}: {self.quote[:40]}"
