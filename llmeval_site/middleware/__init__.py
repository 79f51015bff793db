"""Middleware of the project."""
