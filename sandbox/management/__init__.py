"""Management commands of the sandbox."""
