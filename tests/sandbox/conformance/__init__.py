"""Conformance table: attacks and legitimate programs with their required results on every backend and tier."""
