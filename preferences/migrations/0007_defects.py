"""A preference that overrules the tests names the claim that it rests on."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hub', '0002_gate_request'),
        ('preferences', '0006_ordered_critiques'),
    ]

    operations = [
        migrations.AddField(
            model_name='preference',
            name='defect',
            field=models.ForeignKey(blank=True, help_text='The claim that it rests on.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='hub.casedefect'),
        ),
    ]
