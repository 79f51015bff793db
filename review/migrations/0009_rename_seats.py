from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Rename `seat` to `slot`, and the constraints of assignments accordingly."""

    dependencies = [
        ("review", "0008_unknown_costs"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="assignment", name="one_seat_per_reviewer"),
        migrations.RemoveConstraint(model_name="assignment", name="one_open_seat_per_reviewer"),
        migrations.RemoveConstraint(model_name="assignment", name="one_seat"),
        migrations.RenameField(model_name="assignment", old_name="seat", new_name="slot"),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.UniqueConstraint(
                fields=["pair", "reviewer"], name="one_assignment_per_pair_and_reviewer"
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.UniqueConstraint(
                fields=["reviewer"], condition=Q(state="open"), name="one_open_assignment_per_reviewer"
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.UniqueConstraint(
                fields=["pair", "slot"], condition=Q(state__in=["open", "done"]), name="one_assignment_per_slot"
            ),
        ),
    ]
