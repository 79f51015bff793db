from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from hub.common.fields import LargeJSONField, move_into_rows

EPISODE_COLUMNS = ("state", "calls", "recordings", "tokens", "last_answer")


def move_all_into_rows(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Store the contents of files in the rows, as earlier releases read them. The files are left."""
    sessions = apps.get_model("runs", "EpisodeSession").objects.all()
    for column in EPISODE_COLUMNS:
        move_into_rows(sessions, column)
    move_into_rows(apps.get_model("runs", "EpisodeCheckpoint").objects.all(), "state")


class Migration(migrations.Migration):
    dependencies = [("runs", "0035_response_case_index")]

    operations = [
        migrations.AlterField("episodecheckpoint", "state", LargeJSONField(default=dict)),
        migrations.AlterField("episodesession", "state", LargeJSONField(default=dict)),
        migrations.AlterField("episodesession", "calls", LargeJSONField(default=list)),
        migrations.AlterField(
            "episodesession",
            "recordings",
            LargeJSONField(default=list, help_text="Replies of role models in an earlier episode, to be replayed."),
        ),
        migrations.AlterField(
            "episodesession",
            "tokens",
            LargeJSONField(
                default=list, help_text="Token ids and log-probabilities of each step; null if the trainer sent none."
            ),
        ),
        migrations.AlterField(
            "episodesession",
            "last_answer",
            LargeJSONField(null=True, help_text="Answer to the latest step or finish, for repeated requests."),
        ),
        migrations.RunPython(migrations.RunPython.noop, move_all_into_rows),
    ]
