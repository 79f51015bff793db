"""Runs untrusted Python in isolated processes and reports the outcome; see docs/sandbox.md."""
