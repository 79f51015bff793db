from django.db import migrations


def restore_key_order(apps, schema_editor):
    """Give manifests and cases the order of keys that their bundle has; jsonb, PostgreSQL's type, had sorted them.

    Values are compared before they are replaced, so that nothing but the order can change.
    """
    if schema_editor.connection.vendor != "postgresql":
        return
    from hub.bundles.cases import PreparedCase, prepared_cases
    from hub.bundles.loader import open_archive
    from hub.manifest.problems import BundleError

    Case = apps.get_model("hub", "Case")
    EnvironmentVersion = apps.get_model("hub", "EnvironmentVersion")
    for version in EnvironmentVersion.objects.iterator():
        if not version.archive or not version.archive.storage.exists(version.archive.name):
            continue
        try:
            with open_archive(version.archive.open("rb")) as bundle:
                if bundle.yaml.value == version.manifest:
                    version.manifest = bundle.yaml.value
                    version.save(update_fields=["manifest"])
                for found in prepared_cases(bundle.manifest, None, bundle.file):
                    if not isinstance(found, PreparedCase):
                        continue
                    data = found.case.to_json()
                    stored = Case.objects.filter(version=version, position=found.position).first()
                    if stored is not None and stored.data == data:
                        Case.objects.filter(pk=stored.pk).update(data=data)
        except (BundleError, ValueError) as error:
            print(f"hub: the cases of {version.digest[:12]} keep their order of keys; its bundle cannot be read: {error}")


class Migration(migrations.Migration):

    dependencies = [
        ('hub', '0003_ordered_json'),
    ]

    operations = [
        migrations.RunPython(restore_key_order, migrations.RunPython.noop),
    ]
