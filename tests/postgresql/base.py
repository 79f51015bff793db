"""Django's backend for PostgreSQL, except that it empties tables with DELETE.

Tests with real transactions empty all tables when they end, and these tables have few rows. TRUNCATE creates the files
of every table and index anew, which takes a second or more; DELETE takes milliseconds.
"""

from collections.abc import Sequence

from django.core.management.color import Style
from django.db.backends.postgresql import base, operations


class DatabaseOperations(operations.DatabaseOperations):
    """Django's operations, with another way to empty tables."""

    def sql_flush(
        self, style: Style, tables: Sequence[str], *, reset_sequences: bool = False, allow_cascade: bool = False
    ) -> list[str]:
        """Return the statements that empty `tables`."""
        if reset_sequences or not tables:
            return super().sql_flush(style, tables, reset_sequences=reset_sequences, allow_cascade=allow_cascade)
        # Foreign keys are checked at the end of the transaction, so that the order of the tables does not matter.
        return [" ".join(f"DELETE FROM {self.quote_name(table)};" for table in tables)]


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection with these operations."""

    ops_class = DatabaseOperations
