from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("llmeval_site", "0003_api_tokens"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="keptanswer", name="one_answer_per_key"),
        migrations.RenameModel(old_name="KeptAnswer", new_name="IdempotencyRecord"),
        migrations.AlterField(
            model_name="idempotencyrecord",
            name="request_digest",
            field=models.CharField(
                help_text="SHA-256 of the request: a key is valid for one request.", max_length=64
            ),
        ),
        migrations.AddConstraint(
            model_name="idempotencyrecord",
            constraint=models.UniqueConstraint(fields=("user", "key"), name="one_record_per_key"),
        ),
    ]
