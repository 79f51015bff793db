"""Comparison of the answers of each preference, which exports had to read from the transcripts."""

from django.db import migrations, models

from hub.common.fields import ContentUnavailable
from preferences.answers import compare_answers

_CHUNK = 500
_FIELDS = ["first_digest", "second_digest", "same_answer", "longer"]


def compare_stored_answers(apps, schema_editor):
    """Compare the answers of stored preferences; exports do so themselves where a transcript cannot be read now."""
    preferences = apps.get_model("preferences", "Preference").objects.using(schema_editor.connection.alias)
    with_answers = preferences.select_related("first", "second").only("first__messages", "second__messages")
    found = []
    for pk in preferences.order_by("pk").values_list("pk", flat=True).iterator(chunk_size=_CHUNK):
        try:
            preference = with_answers.get(pk=pk)
        except ContentUnavailable:
            continue
        for name, value in compare_answers(preference.first, preference.second).items():
            setattr(preference, name, value)
        found.append(preference)
        if len(found) == _CHUNK:
            preferences.bulk_update(found, _FIELDS)
            found = []
    preferences.bulk_update(found, _FIELDS)


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
