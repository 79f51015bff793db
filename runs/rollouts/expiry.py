"""Expiry of episodes: when an idle episode ends, and when it is deleted."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from runs.models import EpisodeSession


def next_expiry() -> datetime:
    """Return the time at which an episode that was used now expires."""
    return timezone.now() + timedelta(seconds=settings.EPISODE_IDLE_SECONDS)


def expired_rollouts() -> QuerySet[EpisodeSession]:
    """Return the episodes that expired more than EPISODE_KEEP_DAYS days ago."""
    return EpisodeSession.objects.filter(expires_at__lt=timezone.now() - timedelta(days=settings.EPISODE_KEEP_DAYS))
