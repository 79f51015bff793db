"""The tables of the first release."""

import django.db.models.deletion
import hub.common.fields
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    # Databases of the main branch before the first release have these.
    replaces = [
        ("preferences", "0001_initial"),
        ("preferences", "0003_orders"),
        ("preferences", "0004_side_names"),
        ("preferences", "0005_ordered_json"),
        ("preferences", "0006_ordered_critiques"),
        ("preferences", "0007_defects"),
        ("preferences", "0008_link_defects"),
        ("preferences", "0009_issues_in_calls"),
        ("preferences", "0010_help_texts"),
        ("preferences", "0011_insight_results"),
    ]

    initial = True

    dependencies = [
        ('hub', '0001_first_release'),
        ('runs', '0001_first_release'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='IssueCategory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=40, unique=True)),
                ('title', models.CharField(max_length=80)),
                ('description', models.CharField(blank=True, help_text='When to choose this category; judge models read it too.', max_length=300)),
                ('active', models.BooleanField(default=True)),
                ('position', models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                'verbose_name_plural': 'issue categories',
                'ordering': ['position', 'slug'],
            },
        ),
        migrations.CreateModel(
            name='Preference',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verdict', models.CharField(choices=[('first', 'first is better'), ('second', 'second is better'), ('tie', 'tie'), ('both_bad', 'both bad')], max_length=8)),
                ('source', models.CharField(choices=[('human', 'human'), ('llm', 'judge model'), ('execution', 'execution')], db_index=True, max_length=10)),
                ('critique', models.TextField(blank=True, help_text='Refers to the responses by the tokens of preferences.sides.')),
                ('confidence', models.FloatField(blank=True, help_text='From 0 to 1; null if none was given.', null=True)),
                ('judge', models.CharField(blank=True, help_text="The judge model's label.", max_length=120)),
                ('judge_fingerprint', models.CharField(blank=True, max_length=64)),
                ('prompt_version', models.CharField(blank=True, max_length=32)),
                ('order_sensitive', models.BooleanField(default=False, help_text='The verdicts of the two orders differ.')),
                ('orders', hub.common.fields.OrderedJSONField(blank=True, default=list, help_text='Verdicts of the judge: with the first response shown as A, then with the second.')),
                ('order_critiques', hub.common.fields.OrderedJSONField(blank=True, default=list, help_text='Critiques of the judge, one for each order.')),
                ('saw_evidence', models.BooleanField(default=False, help_text='Whether the judge saw the scoring results.')),
                ('self_preference', models.BooleanField(default=False, help_text='The judge belongs to the family of one of the two models.')),
                ('suggestion_taken', models.BooleanField(help_text='Accepted (true) or overridden (false); null if no suggestion was seen.', null=True)),
                ('suggestion_seen_at', models.DateTimeField(blank=True, null=True)),
                ('first_verdict', models.CharField(blank=True, choices=[('first', 'first is better'), ('second', 'second is better'), ('tie', 'tie'), ('both_bad', 'both bad')], help_text='The verdict given before the hidden suggestion was shown.', max_length=8)),
                ('dismissed', hub.common.fields.OrderedJSONField(default=list, help_text='Ids of suggested issues that the reviewer dismissed.')),
                ('check_result', models.CharField(blank=True, choices=[('', 'no check'), ('passed', 'passed'), ('failed', 'accepted a wrong suggestion')], default='', max_length=8)),
                ('disputes_tests', models.BooleanField(default=False, help_text='The verdict overrules the tests, and a defect is reported.')),
                ('input_digest', models.CharField(max_length=64)),
                ('scoring_digest', models.CharField(max_length=64)),
                ('config_hash', models.CharField(max_length=64)),
                ('evidence', hub.common.fields.OrderedJSONField(default=dict)),
                ('seconds', models.FloatField(blank=True, help_text='Seconds between opening the pair and deciding it.', null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True, db_index=True)),
                ('case', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='hub.case')),
                ('defect', models.ForeignKey(blank=True, help_text='The report on which an overruling verdict is based.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='hub.casedefect')),
                ('first', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='preferences_as_first', to='runs.response')),
                ('reviewer', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='preferences', to='runs.run')),
                ('second', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='preferences_as_second', to='runs.response')),
                ('suggestion', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='answers', to='preferences.preference')),
                ('supersedes', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='successor', to='preferences.preference')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='hub.environmentversion')),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Issue',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('severity', models.CharField(choices=[('minor', 'minor'), ('major', 'major'), ('critical', 'critical')], default='major', max_length=10)),
                ('note', models.TextField(blank=True, help_text='Refers to the responses by the tokens of preferences.sides.')),
                ('message', models.PositiveIntegerField(default=0)),
                ('call', models.PositiveSmallIntegerField(blank=True, help_text='Index of the tool call that contains the span, if any.', null=True)),
                ('start', models.PositiveIntegerField(null=True)),
                ('end', models.PositiveIntegerField(null=True)),
                ('quote', models.TextField(blank=True)),
                ('prefix', models.CharField(blank=True, max_length=64)),
                ('suffix', models.CharField(blank=True, max_length=64)),
                ('text_hash', models.CharField(blank=True, max_length=64)),
                ('kept_from', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='kept', to='preferences.issue')),
                ('response', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='issues', to='runs.response')),
                ('category', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='preferences.issuecategory')),
                ('preference', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='issues', to='preferences.preference')),
            ],
            options={
                'ordering': ['response', 'message', 'start', 'id'],
            },
        ),
        migrations.CreateModel(
            name='InsightResult',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('agreement', 'agreement'), ('ranking', 'ranking')], max_length=16)),
                ('scope', models.CharField(help_text='Digest of the filters and of what the viewer may not see.', max_length=64)),
                ('filters', hub.common.fields.OrderedJSONField(default=dict)),
                ('figures', hub.common.fields.OrderedJSONField()),
                ('revision', models.PositiveSmallIntegerField()),
                ('state', models.CharField(help_text='Newest preference and resolved defect at the computation.', max_length=80)),
                ('seconds', models.FloatField(help_text='Duration of the computation.')),
                ('computed_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(db_index=True, help_text='When somebody looked at it last, to about five minutes.')),
                ('viewer', models.ForeignKey(blank=True, help_text='The user whose visible preferences count; null for users who see all of them.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['id'],
                'constraints': [models.UniqueConstraint(fields=('kind', 'scope'), name='one_insight_per_scope')],
            },
        ),
        migrations.AddIndex(
            model_name='preference',
            index=models.Index(fields=['run', 'source'], name='preference_run_source'),
        ),
        migrations.AddIndex(
            model_name='preference',
            index=models.Index(fields=['first', 'second'], name='preference_pair'),
        ),
        migrations.AddConstraint(
            model_name='preference',
            constraint=models.CheckConstraint(condition=models.Q(('first', models.F('second')), _negated=True), name='preference_of_two_responses'),
        ),
    ]
