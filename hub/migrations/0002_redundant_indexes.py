import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hub', '0001_first_release'),
    ]

    operations = [
        migrations.AlterField(
            model_name='case',
            name='version',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='cases', to='hub.environmentversion'),
        ),
        migrations.AlterField(
            model_name='environmentversion',
            name='environment',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='hub.environment'),
        ),
    ]
