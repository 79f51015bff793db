import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hub', '0002_redundant_indexes'),
        ('runs', '0001_first_release'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='shard',
            name='shard_open_per_model',
        ),
        migrations.AlterField(
            model_name='episodecheckpoint',
            name='run_model',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='checkpoints', to='runs.runmodel'),
        ),
        migrations.AlterField(
            model_name='episodesession',
            name='user',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='runenvironment',
            name='run',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='environments', to='runs.run'),
        ),
        migrations.AlterField(
            model_name='runmodel',
            name='run',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='models', to='runs.run'),
        ),
        migrations.AlterField(
            model_name='runresult',
            name='run_environment',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='results', to='runs.runenvironment'),
        ),
        migrations.AlterField(
            model_name='runtag',
            name='run',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='tags', to='runs.run'),
        ),
        migrations.AlterField(
            model_name='score',
            name='response',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='scores', to='runs.response'),
        ),
        migrations.AlterField(
            model_name='shard',
            name='run',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='shards', to='runs.run'),
        ),
        migrations.AlterField(
            model_name='shard',
            name='run_model',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.runmodel'),
        ),
        migrations.AlterField(
            model_name='teamspend',
            name='run',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run'),
        ),
        migrations.AlterField(
            model_name='teamspend',
            name='team',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='hub.team'),
        ),
        migrations.AddIndex(
            model_name='shard',
            index=models.Index(fields=['run', 'run_model', 'done', 'id'], name='shard_waiting'),
        ),
    ]
