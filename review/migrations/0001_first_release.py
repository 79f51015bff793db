"""The tables of the first release."""

import django.db.models.deletion
import hub.common.fields
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    # Databases of the main branch before the first release have these.
    replaces = [
        ("review", "0001_initial"),
        ("review", "0003_waiting_by_run"),
        ("review", "0004_side_names"),
        ("review", "0005_ordered_json"),
        ("review", "0006_give_seats_back"),
        ("review", "0007_one_open_seat"),
        ("review", "0008_unknown_costs"),
        ("review", "0009_rename_seats"),
        ("review", "0010_help_texts"),
        ("review", "0011_assignment_leases"),
    ]

    initial = True

    dependencies = [
        ('hub', '0001_first_release'),
        ('preferences', '0001_first_release'),
        ('runs', '0001_first_release'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Guideline',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('title', models.CharField(max_length=120)),
                ('text', models.TextField(help_text='Markdown.')),
                ('active', models.BooleanField(default=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': [models.OrderBy(models.F('updated_at'), descending=True)],
            },
        ),
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('lease_until', models.DateTimeField(blank=True, help_text='When others may take it over.', null=True)),
                ('slot', models.PositiveSmallIntegerField(help_text='From 0 to the overlap of the pair minus 1.')),
                ('state', models.CharField(choices=[('open', 'open'), ('done', 'done'), ('skipped', 'skipped'), ('lapsed', 'lapsed')], default='open', max_length=8)),
                ('lease_owner', models.CharField(blank=True, help_text='`reviewer:<id>` while the assignment is open, else empty.', max_length=100)),
                ('swapped', models.BooleanField(help_text='Whether the second response of the pair is shown as A.')),
                ('hides_suggestion', models.BooleanField(default=False, help_text='The suggestion is shown only after a first verdict.')),
                ('suggestion_seen_at', models.DateTimeField(blank=True, null=True)),
                ('first_verdict', models.CharField(blank=True, max_length=8)),
                ('draft', hub.common.fields.OrderedJSONField(blank=True, default=dict)),
                ('skip_reason', models.CharField(blank=True, max_length=400)),
                ('started_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('preference', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='assignment', to='preferences.preference')),
                ('reviewer', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='AttentionCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('wrong_verdict', models.CharField(choices=[('first', 'first is better'), ('second', 'second is better'), ('tie', 'tie'), ('both_bad', 'both bad')], max_length=8)),
                ('accepted', models.BooleanField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('assignment', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='check_shown', to='review.assignment')),
            ],
        ),
        migrations.CreateModel(
            name='Pair',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('both_pass', 'both pass'), ('both_fail', 'both fail'), ('one_passes', 'exactly one passes')], max_length=12)),
                ('position', models.BigIntegerField()),
                ('overlap', models.PositiveSmallIntegerField(default=0, help_text='Number of reviewers who decide the pair; 0: not for review.')),
                ('free', models.PositiveSmallIntegerField(default=0)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('case', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='hub.case')),
                ('first', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.response')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pairs', to='runs.run')),
                ('second', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.response')),
                ('suggestion', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='preferences.preference')),
            ],
            options={
                'ordering': ['position'],
                'permissions': [('decide_pair', 'Can review pairs of responses')],
            },
        ),
        migrations.CreateModel(
            name='JudgeCall',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('judge', models.CharField(max_length=120)),
                ('fingerprint', models.CharField(max_length=64)),
                ('prompt_version', models.CharField(max_length=32)),
                ('swapped', models.BooleanField(help_text='Whether the second response of the pair was shown as A.')),
                ('saw_evidence', models.BooleanField()),
                ('answer', hub.common.fields.OrderedJSONField(help_text='The parsed judgment; null if no reply could be parsed.', null=True)),
                ('text', models.TextField(blank=True, help_text='The text of the last reply.')),
                ('problem', models.TextField(blank=True)),
                ('replies', models.PositiveSmallIntegerField(default=0)),
                ('struck', models.PositiveSmallIntegerField(default=0, help_text='Number of quotes that are not in the response.')),
                ('input_tokens', models.PositiveIntegerField(default=0)),
                ('output_tokens', models.PositiveIntegerField(default=0)),
                ('cost_usd', models.FloatField(default=0.0, help_text='Null if the cost is unknown.', null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('pair', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judge_calls', to='review.pair')),
            ],
        ),
        migrations.AddField(
            model_name='assignment',
            name='pair',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to='review.pair'),
        ),
        migrations.AddIndex(
            model_name='pair',
            index=models.Index(condition=models.Q(('free__gt', 0)), fields=['run', 'position', 'id'], name='pair_waiting'),
        ),
        migrations.AddIndex(
            model_name='pair',
            index=models.Index(fields=['run', 'kind'], name='pair_run_kind'),
        ),
        migrations.AddConstraint(
            model_name='pair',
            constraint=models.UniqueConstraint(fields=('first', 'second'), name='one_pair_of_two_responses'),
        ),
        migrations.AddConstraint(
            model_name='judgecall',
            constraint=models.UniqueConstraint(fields=('pair', 'fingerprint', 'prompt_version', 'swapped'), name='one_call_per_order'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(condition=models.Q(('state', 'open')), fields=['lease_until'], name='assignment_lease'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(fields=['reviewer', 'state', 'finished_at'], name='assignment_of_reviewer'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(fields=('pair', 'reviewer'), name='one_assignment_per_pair_and_reviewer'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'open')), fields=('reviewer',), name='one_open_assignment_per_reviewer'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(condition=models.Q(('state__in', ['open', 'done'])), fields=('pair', 'slot'), name='one_assignment_per_slot'),
        ),
    ]
