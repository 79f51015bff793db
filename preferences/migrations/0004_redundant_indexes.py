import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('preferences', '0003_compared_answers'),
        ('runs', '0002_redundant_indexes'),
    ]

    operations = [
        migrations.AlterField(
            model_name='preference',
            name='first',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='preferences_as_first', to='runs.response'),
        ),
        migrations.AlterField(
            model_name='preference',
            name='run',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='preferences', to='runs.run'),
        ),
    ]
