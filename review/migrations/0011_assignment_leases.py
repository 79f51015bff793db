"""Give assignments the lease fields of runs and gates: an owner while they are open, and no end otherwise."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import CharField, Value
from django.db.models.functions import Cast, Coalesce, Concat


def set_owners(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    assignments = apps.get_model("review", "Assignment").objects
    owner = Concat(Value("reviewer:"), Cast("reviewer_id", CharField()), output_field=CharField())
    assignments.filter(state="open").update(lease_owner=owner)
    assignments.exclude(state="open").update(lease_until=None)


def restore_ends(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    assignments = apps.get_model("review", "Assignment").objects
    assignments.filter(lease_until=None).update(lease_until=Coalesce("finished_at", "started_at"))


class Migration(migrations.Migration):
    dependencies = [("review", "0010_help_texts")]

    operations = [
        migrations.AddField(
            model_name="assignment",
            name="lease_owner",
            field=models.CharField(
                blank=True,
                default="",
                help_text="`reviewer:<id>` while the assignment is open, else empty.",
                max_length=100,
            ),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="assignment",
            name="lease_until",
            field=models.DateTimeField(blank=True, help_text="When others may take it over.", null=True),
        ),
        migrations.RunPython(set_owners, restore_ends),
    ]
