"""Storages of files."""
