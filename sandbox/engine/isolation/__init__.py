"""Isolation of one run from the machine and from other runs."""
