"""Finds tests in a text, runs them and counts asserts."""
