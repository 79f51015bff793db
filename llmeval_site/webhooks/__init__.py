"""Webhooks: requests that tell programs of users about the end of a run."""
