"""A reviewer holds one seat at most: of several that are open the newest stays, the others are given back."""

from django.db import migrations
from django.db.models import F
from django.utils import timezone


def give_back(apps, schema_editor):
    Assignment, Pair = apps.get_model("review", "Assignment"), apps.get_model("review", "Pair")
    seen = set()
    for row in list(Assignment.objects.filter(state="open").order_by("-started_at", "-pk")):
        if row.reviewer_id not in seen:
            seen.add(row.reviewer_id)
        elif row.preference_id is None:
            Assignment.objects.filter(pk=row.pk).update(state="lapsed")
            Pair.objects.filter(pk=row.pair_id).update(free=F("free") + 1)
        else:  # a decision that was taken back, and stands until there is another
            Assignment.objects.filter(pk=row.pk).update(state="done", finished_at=timezone.now())


class Migration(migrations.Migration):

    dependencies = [
        ('review', '0005_ordered_json'),
    ]

    operations = [migrations.RunPython(give_back, migrations.RunPython.noop)]
