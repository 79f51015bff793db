"""The queue is walked run by run."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('review', '0002_reviewers'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='pair',
            name='pair_queue',
        ),
        migrations.AddIndex(
            model_name='pair',
            index=models.Index(condition=models.Q(('free__gt', 0)), fields=['run', 'position', 'id'], name='pair_waiting'),
        ),
    ]
