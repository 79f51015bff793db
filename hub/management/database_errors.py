"""Messages for a database that is not prepared or cannot be reached, which every command may meet."""

from django.db import DatabaseError

from hub.management.invocation import command

_UNPREPARED = ("no such table", "no such column", "UndefinedTable", "UndefinedColumn")
_UNREACHABLE = ("connection failed", "connection is bad", "unable to open database file")
_READ_ONLY = ("readonly database", "read-only transaction")
_DAMAGED = ("file is not a database", "disk image is malformed")
_FULL = ("database or disk is full", "DiskFull")
_FAILING_DISK = ("disk I/O error",)  # also if the disk is so full that SQLite cannot create its -shm file


def describe_unprepared() -> str:
    """Return that the database has to be prepared, and how."""
    return f"The database lacks tables or columns of this release. Prepare it with: {command('prepare')}"


def describe_database_error(error: DatabaseError) -> str | None:
    """Return what is wrong with the database and what to do, or None if *error* has another cause."""
    described = f"{type(error.__cause__).__name__} {error}"
    if any(text in described for text in _UNPREPARED):
        return describe_unprepared()
    if any(text in str(error) for text in _UNREACHABLE):
        return f"The database cannot be reached (DATABASE_URL, LLMEVAL_VAR): {str(error).splitlines()[0]}."
    if any(text in str(error) for text in _READ_ONLY):
        return (
            f"The database cannot be written (DATABASE_URL, LLMEVAL_VAR): {str(error).splitlines()[0]}. Run the "
            "command as a user who may write it, or name another database."
        )
    if any(text in described for text in _DAMAGED):
        reason = str(error).splitlines()[0]
        return f"The database is damaged (DATABASE_URL, LLMEVAL_VAR): {reason}. Restore a backup, or use another file."
    if any(text in described for text in _FULL):
        return "The disk of the database is full (DATABASE_URL, LLMEVAL_VAR). Free some space, and try again."
    if any(text in described for text in _FAILING_DISK):
        return (
            "The disk of the database is full or does not work (DATABASE_URL, LLMEVAL_VAR): disk I/O error. Free some "
            "space, or check the disk, and try again."
        )
    return None
