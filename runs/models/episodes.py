"""Episodes that trainers drive over REST."""

import re
import uuid

from django.conf import settings
from django.db import models
from django.db.models import QuerySet

from hub.common.fields import LargeJSONField, OrderedJSONField
from hub.common.leases import Leased
from hub.models import Case, Team


class EpisodeSession(Leased):
    """Episode that a trainer drives over REST. The row holds its complete state, so any process can take the next step.

    `revision` counts the steps. The request that executes a step holds the lease. A step is stored only if no other
    step was stored since it read the row.
    `calls` holds the replies of role models (simulated users, judges), so that the episode can be replayed.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False)
    case = models.ForeignKey(Case, models.CASCADE, related_name="+")
    seed = models.BigIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=1)
    model = models.CharField(max_length=120, blank=True, help_text="Label that the trainer gave its policy.")
    roles = OrderedJSONField(default=dict, help_text="Role -> names of registered models.")
    team = models.ForeignKey(
        Team,
        models.SET_NULL,
        null=True,
        related_name="+",
        help_text="The team whose spending quota pays for its role models; null if none does, or if they are free.",
    )
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
