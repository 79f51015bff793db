from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

import hub.common.fields

COLUMNS = (("Response", "messages"), ("ModelCall", "message"))


def move_into_rows(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Store the contents of files in the rows, as earlier releases read them. The files are left."""
    for name, column in COLUMNS:
        hub.common.fields.move_into_rows(apps.get_model("runs", name).objects.all(), column)


class Migration(migrations.Migration):
    dependencies = [("runs", "0033_results_by_case")]

    operations = [
        migrations.AlterField(
            model_name="modelcall",
            name="message",
            field=hub.common.fields.LargeJSONField(),
        ),
        migrations.AlterField(
            model_name="response",
            name="messages",
            field=hub.common.fields.LargeJSONField(default=list),
        ),
        migrations.RunPython(migrations.RunPython.noop, move_into_rows),
    ]
