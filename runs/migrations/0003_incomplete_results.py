from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0002_redundant_indexes'),
    ]

    operations = [
        migrations.AddField(
            model_name='runresult',
            name='incomplete',
            field=models.BooleanField(default=False, help_text='Whether too few responses are scored for the accuracy to be final.'),
        ),
    ]
