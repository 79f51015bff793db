from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from hub.common.fields import LargeJSONField, LargeTextField, move_into_rows


def move_all_into_rows(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Store the contents of files in the rows, as earlier releases read them. The files are left."""
    for model, column in (("Response", "text"), ("Score", "detail"), ("Score", "execution")):
        move_into_rows(apps.get_model("runs", model).objects.all(), column)


class Migration(migrations.Migration):
    dependencies = [("runs", "0036_large_episodes")]

    operations = [
        migrations.AlterField(
            "response",
            "text",
            LargeTextField(blank=True, help_text="Text of the last assistant message, as it was scored."),
        ),
        migrations.AlterField("score", "detail", LargeJSONField(default=dict)),
        migrations.AlterField(
            "score", "execution", LargeJSONField(null=True, help_text="The sandbox's outcome, where code ran.")
        ),
        migrations.RunPython(migrations.RunPython.noop, move_all_into_rows),
    ]
