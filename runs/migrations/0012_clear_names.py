from django.db import migrations, models
from django.db.models import F

import hub.common.fields


def order_role_models_by_position(apps, schema_editor):
    """Copy the order of models within a role, which had a field of its own, to the field `position`."""
    apps.get_model("runs", "RunModel").objects.exclude(role="").update(position=F("seat"))


class Migration(migrations.Migration):

    dependencies = [
        ("runs", "0011_unknown_costs"),
    ]

    operations = [
        migrations.RenameField("run", "played_at", "evaluated_at"),
        migrations.RenameField("runenvironment", "chosen", "case_positions"),
        migrations.RunPython(order_role_models_by_position, migrations.RunPython.noop),
        migrations.RemoveField("runmodel", "seat"),
    ]
