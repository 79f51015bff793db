"""Stored data from which a run continues where it stopped: cached calls of models, and checkpoints of episodes."""

from django.db import models
from django.db.models import QuerySet

from hub.common.fields import LargeJSONField, OrderedJSONField
from hub.common.unused_files import folder_number
from hub.models import Case
from runs.models.runs import RunEnvironment, RunModel


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
    paid_for = models.CharField(
        max_length=16, blank=True, default="", help_text="Digest of the attempt at a case that it was paid for."
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


class EpisodeCheckpoint(models.Model):
    """State of an episode of a run after its latest turn, so that another process can continue it.

    Removed when the response is stored. `totals` are the tokens, costs and times of its calls so far.
    """

    run_environment = models.ForeignKey(RunEnvironment, models.CASCADE, related_name="+")
    run_model = models.ForeignKey(RunModel, models.CASCADE, related_name="checkpoints", db_index=False)
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
        number = folder_number(name)
        return None if number is None else cls.objects.filter(run_model=number)
