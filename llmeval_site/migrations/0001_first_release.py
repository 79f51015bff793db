"""The tables of the first release."""

import django.db.models.deletion
import hub.common.fields
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    # Databases of the main branch before the first release have these.
    replaces = [
        ("llmeval_site", "0001_initial"),
        ("llmeval_site", "0003_api_tokens"),
        ("llmeval_site", "0004_idempotency_records"),
        ("llmeval_site", "0005_audit_entries"),
        ("llmeval_site", "0006_webhooks"),
        ("llmeval_site", "0007_openid_identities"),
    ]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(blank=True, max_length=120)),
                ('prefix', models.CharField(max_length=12, unique=True)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('scopes', hub.common.fields.OrderedJSONField(default=list)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(auto_now_add=True, db_index=True)),
                ('username', models.CharField(help_text='Name of the user at that time.', max_length=150)),
                ('token', models.CharField(blank=True, help_text='First characters of the REST token, if one was used.', max_length=12)),
                ('action', models.CharField(db_index=True, help_text='Name of the URL, such as runs:cancel.', max_length=100)),
                ('method', models.CharField(max_length=8)),
                ('path', models.CharField(max_length=500)),
                ('status', models.PositiveSmallIntegerField(help_text='Status of the HTTP response.')),
                ('request_id', models.CharField(help_text='X-Request-ID, as in the log.', max_length=36)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'audit entries',
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.CharField(max_length=500)),
                ('secret', models.CharField(help_text='Key of the signature.', max_length=100)),
                ('events', hub.common.fields.OrderedJSONField(default=list)),
                ('failures', models.PositiveIntegerField(default=0, help_text='Deliveries in a row that were given up.')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('disabled_at', models.DateTimeField(blank=True, null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='IdempotencyRecord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=255)),
                ('request_digest', models.CharField(help_text='SHA-256 of the request: a key is valid for one request.', max_length=64)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('content_type', models.CharField(blank=True, max_length=100)),
                ('body', models.BinaryField(default=bytes)),
                ('created_at', models.DateTimeField(auto_now_add=True, db_index=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'key'), name='one_record_per_key')],
            },
        ),
        migrations.CreateModel(
            name='OpenIDIdentity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('issuer', models.CharField(help_text='The provider, as in LLMEVAL_OIDC_ISSUER.', max_length=255)),
                ('subject', models.CharField(help_text='What the provider calls the person: the claim `sub`.', max_length=255)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='openid_identities', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'OpenID identity',
                'verbose_name_plural': 'OpenID identities',
                'ordering': ['-id'],
                'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='one_user_per_identity')],
            },
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('event_id', models.UUIDField(unique=True)),
                ('event', models.CharField(max_length=40)),
                ('body', models.TextField()),
                ('status', models.CharField(choices=[('waiting', 'waiting'), ('delivered', 'delivered'), ('failed', 'given up')], default='waiting', max_length=12)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_attempt_at', models.DateTimeField()),
                ('attempted_at', models.DateTimeField(blank=True, null=True)),
                ('response_status', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('problem', models.CharField(blank=True, max_length=500)),
                ('created_at', models.DateTimeField(auto_now_add=True, db_index=True)),
                ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='llmeval_site.webhook')),
            ],
            options={
                'verbose_name_plural': 'webhook deliveries',
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['status', 'next_attempt_at'], name='due_deliveries')],
            },
        ),
    ]
