"""Texts of judges and reviewers name the responses by tokens instead of the letters that their writers saw."""

from itertools import islice

from django.db import migrations

from review.migrations import _side_references as references
from review.migrations._side_references import lists_choices

CHUNK = 200
SIDED = ["critique", "order_critiques"]


def chunks(rows):
    found = rows.iterator(chunk_size=CHUNK)
    while chunk := list(islice(found, CHUNK)):
        yield chunk


def letters_to_tokens(text, swapped, choices):
    """*text* with tokens; one that has some already stays as it is."""
    return text if not text or "⟦" in text else references.letters_to_tokens(text, swapped, choices)


def name_sides(apps, schema_editor):
    names = judges(apps)
    names |= reviewers(apps)
    copy_kept(apps, names)


def judges(apps):
    """Translate what judges wrote: critiques are of the order with the first response as A, notes of either order.

    Returns the notes that were translated, by the issue's id.
    """
    Preference, Issue = apps.get_model("preferences", "Preference"), apps.get_model("preferences", "Issue")
    JudgeCall = apps.get_model("review", "JudgeCall")
    translated = {}
    for rows in chunks(Preference.objects.filter(source="llm").select_related("first").order_by("pk")):
        sides = {(row.first_id, row.second_id) for row in rows}
        calls = {}
        of_rows = JudgeCall.objects.filter(pair__first__in={first for first, _ in sides}, answer__isnull=False)
        for call in of_rows.select_related("pair").defer("text"):
            key = call.pair.first_id, call.pair.second_id, call.fingerprint, call.prompt_version
            calls.setdefault(key, {})[call.swapped] = call.answer
        issues = {}
        for issue in Issue.objects.filter(preference__in=rows):
            issues.setdefault(issue.preference_id, []).append(issue)
        notes = []
        for row in rows:
            choices = lists_choices(row.first.messages)
            said = calls.get((row.first_id, row.second_id, row.judge_fingerprint, row.prompt_version), {})
            if len(said) == 2 and not row.order_critiques:
                row.order_critiques = [
                    letters_to_tokens(str(said[swapped].get("critique") or ""), swapped, choices) for swapped in (False, True)
                ]
            row.critique = letters_to_tokens(row.critique, False, choices)
            for issue in issues.get(row.pk, []):
                swapped = order_of(issue, row, said)
                if swapped is not None:
                    issue.note = translated[issue.pk] = letters_to_tokens(issue.note, swapped, choices)
                    notes.append(issue)
        Preference.objects.bulk_update(rows, SIDED)
        Issue.objects.bulk_update(notes, ["note"])
    return translated


def order_of(issue, preference, said):
    """Whether the issue was named in the order with the second response as A; None where that is not known."""
    side = "first" if issue.response_id == preference.first_id else "second"
    for swapped in sorted(said):
        for item in said[swapped].get("issues") or []:
            letter = item.get("side") or ""
            named = references.side_of(letter, swapped) if letter.lower() in ("a", "b") else letter
            if item.get("note") == issue.note and named in (side, ""):
                return swapped
    return None


def reviewers(apps):
    """Translate what reviewers wrote: every decision of an assignment, also those that were undone, has its order."""
    Preference, Issue = apps.get_model("preferences", "Preference"), apps.get_model("preferences", "Issue")
    Assignment = apps.get_model("review", "Assignment")
    translated = {}
    decided = Assignment.objects.filter(preference__isnull=False).order_by("pk").values_list("preference", "swapped")
    orders = dict(decided.iterator(chunk_size=CHUNK))
    latest = list(orders)
    for start in range(0, len(latest), CHUNK):
        rows = list(Preference.objects.filter(pk__in=latest[start : start + CHUNK]).select_related("first"))
        while rows:
            for row in rows:
                row.critique = letters_to_tokens(row.critique, orders[row.pk], lists_choices(row.first.messages))
            Preference.objects.bulk_update(rows, ["critique"])
            choices = {row.pk: lists_choices(row.first.messages) for row in rows}
            own = list(Issue.objects.filter(preference__in=rows, kept_from__isnull=True))
            for issue in own:
                note = letters_to_tokens(issue.note, orders[issue.preference_id], choices[issue.preference_id])
                issue.note = translated[issue.pk] = note
            Issue.objects.bulk_update(own, ["note"])
            for row in rows:
                if row.supersedes_id is not None:
                    orders[row.supersedes_id] = orders[row.pk]
            earlier = [row.supersedes_id for row in rows if row.supersedes_id is not None]
            rows = list(Preference.objects.filter(pk__in=earlier, source="human").select_related("first"))
    return translated


def copy_kept(apps, translated):
    """Issues that reviewers kept from the judge have the judge's note."""
    Issue = apps.get_model("preferences", "Issue")
    for rows in chunks(Issue.objects.filter(kept_from__isnull=False).order_by("pk")):
        kept = [row for row in rows if row.kept_from_id in translated]
        for row in kept:
            row.note = translated[row.kept_from_id]
        Issue.objects.bulk_update(kept, ["note"])


def show_letters(apps, schema_editor):
    """Put letters back, those of the order with the first response as A; tokens mean nothing to earlier releases."""
    for model, name in (("Preference", "critique"), ("Issue", "note")):
        of_model = apps.get_model("preferences", model)
        for rows in chunks(of_model.objects.filter(**{f"{name}__contains": "⟦"}).order_by("pk")):
            for row in rows:
                setattr(row, name, references.tokens_to_letters(getattr(row, name)))
            of_model.objects.bulk_update(rows, [name])


class Migration(migrations.Migration):

    dependencies = [
        ('review', '0003_waiting_by_run'),
        ('preferences', '0004_side_names'),
    ]

    operations = [migrations.RunPython(name_sides, show_letters)]
