"""Runs Python that nobody vouches for and says what it did; see docs/sandbox.md."""
