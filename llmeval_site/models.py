"""What belongs to no app: answers kept for a client that repeats a POST with the same Idempotency-Key."""

from django.conf import settings
from django.db import models


class KeptAnswer(models.Model):
    """The answer to one POST of one user. `status` is null while the first request is still being answered."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    request_digest = models.CharField(max_length=64, help_text="SHA-256 of path and body: a key names one request.")
    status = models.PositiveSmallIntegerField(null=True)
    content_type = models.CharField(max_length=100, blank=True)
    body = models.BinaryField(default=bytes)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_answer_per_key")]

    def __str__(self) -> str:
        return self.key
