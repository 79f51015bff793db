from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('llmeval_site', '0003_redundant_indexes'),
    ]

    operations = [
        migrations.AddField(
            model_name='idempotencyrecord',
            name='compressed',
            field=models.BooleanField(default=False, help_text='Whether `body` is compressed with gzip.'),
        ),
    ]
