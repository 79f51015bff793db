"""Preferences between two responses, the issues marked in the responses, and the categories of issues.

Preferences are append-only: a change adds a row that supersedes the earlier one. Rows are never updated.
"""

from collections.abc import Iterable

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.base import ModelBase

from hub.common.fields import OrderedJSONField
from hub.models import Case, CaseDefect, EnvironmentVersion
from preferences.sides import Side, other_side, tokens_to_phrases
from runs.models import Response, Run


class IssueCategory(models.Model):
    """Kind of issue in a response. Curators edit the list; categories are deactivated, never deleted."""

    slug = models.SlugField(max_length=40, unique=True)
    title = models.CharField(max_length=80)
    description = models.CharField(
        max_length=300, blank=True, help_text="When to choose this category; judge models read it too."
    )
    active = models.BooleanField(default=True)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["position", "slug"]
        verbose_name_plural = "issue categories"

    def __str__(self) -> str:
        return self.title


class AppendOnly(ValueError):
    """Attempt to change a stored preference."""


class Preference(models.Model):
    """One verdict on two responses to the same case.

    `first` and `second` follow the order of the pair, which may differ from the order on the review page. `evidence`
    holds the scoring results of both responses when the verdict was given. The digests identify the state of the case.
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

    first = models.ForeignKey(Response, models.PROTECT, related_name="preferences_as_first", db_index=False)
    second = models.ForeignKey(Response, models.PROTECT, related_name="preferences_as_second")
    verdict = models.CharField(max_length=8, choices=Verdict)
    source = models.CharField(max_length=10, choices=Source, db_index=True)
    critique = models.TextField(blank=True, help_text="Refers to the responses by the tokens of preferences.sides.")
    # What a reviewer fills in besides the verdict; see preferences.decision_fields.
    DECISION_FIELDS = ("critique",)

    confidence = models.FloatField(null=True, blank=True, help_text="From 0 to 1; null if none was given.")

    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    judge = models.CharField(max_length=120, blank=True, help_text="The judge model's label.")
    judge_fingerprint = models.CharField(max_length=64, blank=True)
    prompt_version = models.CharField(max_length=32, blank=True)
    order_sensitive = models.BooleanField(default=False, help_text="The verdicts of the two orders differ.")
    orders = OrderedJSONField(
        default=list,
        blank=True,
        help_text="Verdicts of the judge: with the first response shown as A, then with the second.",
    )
    order_critiques = OrderedJSONField(
        default=list, blank=True, help_text="Critiques of the judge, one for each order."
    )
    saw_evidence = models.BooleanField(default=False, help_text="Whether the judge saw the scoring results.")
    self_preference = models.BooleanField(
        default=False, help_text="The judge belongs to the family of one of the two models."
    )

    suggestion = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="answers")
    suggestion_taken = models.BooleanField(
        null=True, help_text="Accepted (true) or overridden (false); null if no suggestion was seen."
    )
    suggestion_seen_at = models.DateTimeField(null=True, blank=True)
    first_verdict = models.CharField(
        max_length=8, blank=True, choices=Verdict, help_text="The verdict given before the hidden suggestion was shown."
    )
    dismissed = OrderedJSONField(default=list, help_text="Ids of suggested issues that the reviewer dismissed.")
    check_result = models.CharField(max_length=8, blank=True, choices=Check, default=Check.NONE)
    disputes_tests = models.BooleanField(
        default=False, help_text="The verdict overrules the tests, and a defect is reported."
    )
    defect = models.ForeignKey(
        CaseDefect,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The report on which an overruling verdict is based.",
    )

    run = models.ForeignKey(Run, models.PROTECT, related_name="preferences", db_index=False)
    version = models.ForeignKey(EnvironmentVersion, models.PROTECT, related_name="+")
    case = models.ForeignKey(Case, models.PROTECT, related_name="+")
    input_digest = models.CharField(max_length=64)
    scoring_digest = models.CharField(max_length=64)
    config_hash = models.CharField(max_length=64)
    evidence = OrderedJSONField(default=dict)
    # What exports compare the answers by; see preferences.answers. The digests are empty if they are not known.
    first_digest = models.CharField(max_length=64, blank=True, help_text="Digest of the first prompt and answer.")
    second_digest = models.CharField(max_length=64, blank=True, help_text="Digest of the second prompt and answer.")
    same_answer = models.BooleanField(default=False, help_text="Both answers are the same.")
    longer = models.IntegerField(default=0, help_text="By how many characters the first answer is longer.")
    seconds = models.FloatField(null=True, blank=True, help_text="Seconds between opening the pair and deciding it.")
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

    def save(
        self,
        *,
        force_insert: bool | tuple[ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        if not self._state.adding:
            raise AppendOnly("A stored preference cannot be changed. Record a new one that supersedes it.")
        super().save(force_insert=force_insert, force_update=force_update, using=using, update_fields=update_fields)

    @property
    def tests_found_wrong(self) -> bool:
        """Whether a curator accepted a defect of the case. `selectors.with_related_objects` loads it with the row."""
        annotated = self.__dict__.get("case_found_wrong")
        if annotated is None:
            return self.case.defects.filter(status=CaseDefect.Status.ACCEPTED).exists()
        return bool(annotated)

    @property
    def decisive(self) -> bool:
        """Whether the verdict prefers one of the two responses."""
        return self.better_side is not None

    @property
    def better_side(self) -> Side | None:
        """The side with the better response, or None if the verdict is a tie or both bad."""
        if self.verdict == self.Verdict.FIRST:
            return "first"
        return "second" if self.verdict == self.Verdict.SECOND else None

    @property
    def chosen(self) -> Response | None:
        """The better response, or None if the verdict is a tie or both bad."""
        side = self.better_side
        return self.response(side) if side else None

    @property
    def rejected(self) -> Response | None:
        """The worse response, or None if the verdict is a tie or both bad."""
        side = self.better_side
        return self.response(other_side(side)) if side else None

    def response(self, side: Side) -> Response:
        """Return the response on *side*."""
        return self.first if side == "first" else self.second

    def side_of(self, response_id: int) -> Side:
        """Return the side of one of the two responses."""
        return "first" if response_id == self.first_id else "second"

    def tokens_to_phrases(self, text: str) -> str:
        """Return *text* with each side token replaced by "the chosen response" or "the rejected response".

        If neither response is chosen, the phrases are "the first response" and "the second response".
        """
        if not self.decisive:
            return tokens_to_phrases(text)
        better, worse = "the chosen response", "the rejected response"
        first, second = (better, worse) if self.verdict == self.Verdict.FIRST else (worse, better)
        return tokens_to_phrases(text, first=first, second=second)


class InsightResult(models.Model):
    """Figures about many preferences, stored with the time of their computation (preferences/insight/stored.py)."""

    class Kind(models.TextChoices):
        AGREEMENT = "agreement", "agreement"
        RANKING = "ranking", "ranking"

    kind = models.CharField(max_length=16, choices=Kind)
    scope = models.CharField(max_length=64, help_text="Digest of the filters and of what the viewer may not see.")
    viewer = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="The user whose visible preferences count; null for users who see all of them.",
    )
    filters = OrderedJSONField(default=dict)
    figures = OrderedJSONField()
    revision = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=80, help_text="Newest preference and resolved defect at the computation.")
    seconds = models.FloatField(help_text="Duration of the computation.")
    computed_at = models.DateTimeField()
    used_at = models.DateTimeField(db_index=True, help_text="When somebody looked at it last, to about five minutes.")

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["kind", "scope"], name="one_insight_per_scope")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.computed_at:%Y-%m-%d %H:%M}"


class Issue(models.Model):
    """Issue in one response: in a span of one of its messages, or in the whole response if `start` is null.

    `start` and `end` count Unicode code points in `messages[message]["content"]`. If `call` is set, they count in the
    text of that tool call of the message (`preferences.spans.call_text`). `quote`, `prefix` and `suffix` are the W3C
    text-quote selector of the span. `text_hash` is the SHA-256 of the text that contains it.
    """

    class Severity(models.TextChoices):
        MINOR = "minor", "minor"
        MAJOR = "major", "major"
        CRITICAL = "critical", "critical"

    preference = models.ForeignKey(Preference, models.PROTECT, related_name="issues")
    response = models.ForeignKey(Response, models.PROTECT, related_name="issues")
    category = models.ForeignKey(IssueCategory, models.PROTECT, related_name="+")
    severity = models.CharField(max_length=10, choices=Severity, default=Severity.MAJOR)
    note = models.TextField(blank=True, help_text="Refers to the responses by the tokens of preferences.sides.")
    message = models.PositiveIntegerField(default=0)
    call = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Index of the tool call that contains the span, if any."
    )
    start = models.PositiveIntegerField(null=True)
    end = models.PositiveIntegerField(null=True)
    quote = models.TextField(blank=True)
    prefix = models.CharField(max_length=64, blank=True)
    suffix = models.CharField(max_length=64, blank=True)
    text_hash = models.CharField(max_length=64, blank=True)
    kept_from = models.ForeignKey("self", models.PROTECT, null=True, related_name="kept")

    class Meta:
        ordering = ["response_id", "message", "start", "id"]  # by the column: "response" would join its table

    def __str__(self) -> str:
        return f"{self.category}: {self.quote[:40]}"
