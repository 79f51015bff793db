"""The tables of the first release."""

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import hub.common.fields
import hub.models
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    # Databases of the main branch before the first release have these.
    replaces = [
        ("hub", "0001_initial"),
        ("hub", "0002_gate_request"),
        ("hub", "0003_ordered_json"),
        ("hub", "0004_restore_key_order"),
        ("hub", "0005_lease_owner"),
        ("hub", "0006_held_out_permission"),
        ("hub", "0007_help_texts"),
        ("hub", "0008_held_out_help_text"),
        ("hub", "0009_held_out_splits"),
        ("hub", "0010_upload_draft"),
        ("hub", "0011_teams"),
    ]

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Case',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField()),
                ('external_id', models.CharField(max_length=200)),
                ('data', hub.common.fields.OrderedJSONField()),
                ('input_digest', models.CharField(max_length=64)),
                ('scoring_digest', models.CharField(max_length=64)),
                ('held_out', models.BooleanField(default=False, help_text='Of a held-out split, though its environment may be open.')),
            ],
            options={
                'ordering': ['version_id', 'position'],
            },
        ),
        migrations.CreateModel(
            name='CaseDefect',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('description', models.TextField()),
                ('status', models.CharField(choices=[('open', 'open'), ('accepted', 'accepted: the case is quarantined'), ('rejected', 'rejected: the case is correct')], db_index=True, default='open', max_length=16)),
                ('resolution', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('resolved_at', models.DateTimeField(blank=True, null=True)),
                ('case', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='defects', to='hub.case')),
                ('reported_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('resolved_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at'],
            },
        ),
        migrations.CreateModel(
            name='Environment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=64, unique=True)),
                ('title', models.CharField(max_length=120)),
                ('summary', models.CharField(max_length=400)),
                ('category', models.CharField(db_index=True, max_length=32)),
                ('tags', hub.common.fields.OrderedJSONField(blank=True, default=list)),
                ('license', models.CharField(blank=True, max_length=120)),
                ('held_out', models.BooleanField(default=False, help_text='Reserved for evaluation: never exported as training data and not available for RL episodes. Cases, targets, bundle and reasons of scores are shown only to the owner, curators and accounts with the permission hub.view_held_out. It cannot be turned off again.')),
                ('partly_held_out', models.BooleanField(default=False, help_text='A version has held-out splits: their cases are not available for training, and the content is shown as that of a held-out environment, except for the other cases.')),
                ('featured', models.BooleanField(default=False)),
                ('visibility', models.CharField(choices=[('private', 'private (its owner and curators)'), ('published', 'published'), ('retired', 'retired (kept for old runs)')], default='private', max_length=16)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': [django.db.models.functions.text.Lower('title'), 'slug'],
                'permissions': [('curate_environment', 'Can upload, publish and retire environments'), ('view_held_out', 'Can see cases, targets and reasons of held-out environments')],
            },
        ),
        migrations.CreateModel(
            name='EnvironmentVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.CharField(max_length=64)),
                ('digest', models.CharField(db_index=True, max_length=64)),
                ('manifest', hub.common.fields.OrderedJSONField()),
                ('readme', models.TextField(blank=True)),
                ('archive', models.FileField(max_length=200, storage=hub.models.archive_storage, upload_to=hub.models.bundle_path)),
                ('archive_bytes', models.PositiveBigIntegerField(help_text='Size of the archive; null if not measured.', null=True)),
                ('case_count', models.PositiveIntegerField(default=0)),
                ('certificate', hub.common.fields.OrderedJSONField(blank=True, null=True)),
                ('deprecated', models.CharField(blank=True, help_text='Why users should switch to another version; empty if they need not.', max_length=400)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('environment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='hub.environment')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.AddField(
            model_name='environment',
            name='latest',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='hub.environmentversion'),
        ),
        migrations.AddField(
            model_name='case',
            name='version',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='cases', to='hub.environmentversion'),
        ),
        migrations.CreateModel(
            name='GateRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('lease_owner', models.CharField(blank=True, help_text='The process that executes it.', max_length=100)),
                ('lease_until', models.DateTimeField(blank=True, help_text='When others may take it over.', null=True)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('problem', models.TextField(blank=True, help_text='Error of the last try; empty if there was none.')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('version', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='gate_request', to='hub.environmentversion')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Team',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(help_text='Its name in REST, configs and addresses.', max_length=64, unique=True)),
                ('spend_usd_per_month', models.FloatField(blank=True, help_text='US dollars that its runs may spend in a calendar month (UTC).', null=True, validators=[django.core.validators.MinValueValidator(0)])),
                ('runs_per_day', models.PositiveIntegerField(blank=True, help_text='Runs that its members may start in a day (UTC).', null=True)),
                ('storage_bytes', models.PositiveBigIntegerField(blank=True, help_text='Bytes of the bundles of its environments, all versions together.', null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('group', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='team', to='auth.group')),
                ('managers', models.ManyToManyField(blank=True, help_text='Members who move what the team owns to another team.', related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['slug'],
            },
        ),
        migrations.AddField(
            model_name='environment',
            name='team',
            field=models.ForeignKey(blank=True, help_text='The team that owns it, whose members alone see it. Empty: shared with everybody.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='hub.team'),
        ),
        migrations.CreateModel(
            name='UploadDraft',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=200)),
                ('archive', models.BinaryField()),
                ('problems', hub.common.fields.OrderedJSONField(default=list)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('changed_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(blank=True, help_text='The team that will own a new environment.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='hub.team')),
            ],
            options={
                'ordering': ['-changed_at'],
            },
        ),
        migrations.AddConstraint(
            model_name='environmentversion',
            constraint=models.UniqueConstraint(fields=('environment', 'version'), name='one_row_per_version'),
        ),
        migrations.AddConstraint(
            model_name='case',
            constraint=models.UniqueConstraint(fields=('version', 'external_id'), name='one_case_per_id'),
        ),
        migrations.AddConstraint(
            model_name='case',
            constraint=models.UniqueConstraint(fields=('version', 'position'), name='one_case_per_position'),
        ),
    ]
