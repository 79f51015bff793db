"""Webhooks: HTTP requests that inform users' programs of the end of a run."""
