"""Comparison of the answers of each preference, which exports had to read from the transcripts."""

from types import SimpleNamespace

from django.db import migrations, models

from hub.common.fields import ContentUnavailable
from hub.protocols.messages import count_prompt_messages
from preferences.answers import compare_answers

_CHUNK = 500  # preferences with their transcripts in memory at a time


def compare_stored_answers(apps, schema_editor):
    """Compare the answers of stored preferences; exports do so themselves where a transcript cannot be read now."""
    preferences = apps.get_model("preferences", "Preference").objects.using(schema_editor.connection.alias)
    with_answers = preferences.select_related("first", "second").only("first__messages", "second__messages")
    in_order = preferences.order_by("pk").values_list("pk", flat=True)
    last = 0
    while pks := list(in_order.filter(pk__gt=last)[:_CHUNK]):
        for preference in _readable(with_answers, pks):
            compared = compare_answers(_split(preference.first), _split(preference.second))
            preferences.filter(pk=preference.pk).update(**compared)
        last = pks[-1]


def _split(response):
    start = count_prompt_messages(response.messages, None)
    return SimpleNamespace(
        messages=response.messages, prompt=response.messages[:start], answer=response.messages[start:]
    )


def _readable(rows, pks):
    """Return the rows with the primary keys *pks* whose transcripts can be read."""
    try:
        return list(rows.filter(pk__in=pks))
    except ContentUnavailable:
        half = len(pks) // 2  # finds the unreadable ones with few queries
        return [*_readable(rows, pks[:half]), *_readable(rows, pks[half:])] if half else []


class Migration(migrations.Migration):
    dependencies = [
        ("preferences", "0002_categories"),
        ("runs", "0001_first_release"),
    ]
    operations = [
        migrations.AddField(
            model_name="preference",
            name="first_digest",
            field=models.CharField(blank=True, help_text="Digest of the first prompt and answer.", max_length=64),
        ),
        migrations.AddField(
            model_name="preference",
            name="second_digest",
            field=models.CharField(blank=True, help_text="Digest of the second prompt and answer.", max_length=64),
        ),
        migrations.AddField(
            model_name="preference",
            name="same_answer",
            field=models.BooleanField(default=False, help_text="Both answers are the same."),
        ),
        migrations.AddField(
            model_name="preference",
            name="longer",
            field=models.IntegerField(default=0, help_text="By how many characters the first answer is longer."),
        ),
        migrations.RunPython(compare_stored_answers, migrations.RunPython.noop),
    ]
