"""Threads of a web process that execute steps in the background. The threads that serve requests stay free."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

from django.conf import settings


@cache
def get_step_threads() -> ThreadPoolExecutor:
    """Return the threads of this process. Further steps wait until one is free; each holds the lease of its episode."""
    return ThreadPoolExecutor(settings.EPISODE_STEPS, thread_name_prefix="step")
