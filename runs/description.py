"""Name, tags and note of a run, which users can change at any time. They do not affect results."""

import logging
import re
from collections.abc import Iterable

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction

from hub.common.errors import UserError
from runs.models import NOTE_LENGTH, Run, RunTag

logger = logging.getLogger(__name__)

MAX_TAGS = 20
_TAG = re.compile(r"[a-z0-9][a-z0-9._:/-]{0,39}")


def may_describe(user: User | AnonymousUser, run: Run) -> bool:
    """Return whether *user* may change name, tags and note of *run*: its owner may, and users who may cancel runs."""
    return bool(user.pk and run.created_by_id == user.pk) or user.has_perm("runs.change_run")


def read_tags(text: str) -> list[str]:
    """Return the tags of a text that has them between commas or spaces. Raises UserError (tags)."""
    return check_tags(part for part in re.split(r"[,\s]+", text) if part)


def check_tags(tags: Iterable[str]) -> list[str]:
    """Return *tags* in lower case, sorted and each once. Raises UserError (tags)."""
    found = sorted({tag.strip().lower() for tag in tags})
    for tag in found:
        if not _TAG.fullmatch(tag):
            raise UserError(
                f"{tag!r} is not a tag. A tag has 1 to 40 characters, a to z, 0 to 9 and . _ : / -, and begins with "
                "a letter or digit.",
                "tags",
            )
    if len(found) > MAX_TAGS:
        raise UserError(f"{len(found)} tags are too many; a run has at most {MAX_TAGS}.", "tags")
    return found


def tags_of(run: Run) -> list[str]:
    """Return the tags of *run*, sorted."""
    return sorted(row.name for row in run.tags.all())


@transaction.atomic
def describe_run(
    *, run: Run, name: str | None = None, note: str | None = None, tags: Iterable[str] | None = None
) -> None:
    """Change what is given; *tags* replace those that the run has. Raises UserError (name, note, tags).

    The config keeps the name under which the run was started.
    """
    changed: list[str] = []
    if name is not None:
        run.name = " ".join(name.split())
        longest = Run._meta.get_field("name").max_length or 0
        if not 1 <= len(run.name) <= longest:
            raise UserError(f"A name has 1 to {longest} characters, not {len(run.name)}.", "name")
        changed.append("name")
    if note is not None:
        run.note = note.strip()
        if len(run.note) > NOTE_LENGTH:
            raise UserError(f"A note has at most {NOTE_LENGTH:,} characters, not {len(run.note):,}.", "note")
        changed.append("note")
    if changed:
        run.save(update_fields=changed)
    if tags is not None:
        wanted = check_tags(tags)
        run.tags.exclude(name__in=wanted).delete()
        _create_tags(run, wanted)
        changed.append("tags")
    if changed:
        logger.info("run %s: %s changed", run.pk, " and ".join(changed), extra={"run_id": run.pk})


@transaction.atomic
def add_tags(*, run: Run, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
    """Add tags to those of *run*, and remove others. Raises UserError (tags).

    Tags that somebody else adds at the same time are kept.
    """
    added = check_tags(add)
    removed = set(check_tags(remove)).difference(added)
    if not (added or removed):
        return
    Run.objects.select_for_update(of=("self",)).get(pk=run.pk)  # so that two requests at once stay within the limit
    check_tags(set(run.tags.values_list("name", flat=True)).difference(removed).union(added))
    run.tags.filter(name__in=removed).delete()
    _create_tags(run, added)
    logger.info("run %s: tags changed", run.pk, extra={"run_id": run.pk})


def _create_tags(run: Run, names: Iterable[str]) -> None:
    RunTag.objects.bulk_create([RunTag(run=run, name=name) for name in names], ignore_conflicts=True)
