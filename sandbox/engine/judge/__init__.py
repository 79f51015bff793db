"""The roles that run tests and report a verdict."""
