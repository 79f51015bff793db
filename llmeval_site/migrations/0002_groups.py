"""The groups and what each may do. Viewing needs sign-in alone; the admin also needs staff status."""

from django.db import migrations

GROUPS = {
    "Curator": [
        ("hub", "environment", "curate_environment", "Can upload, publish and retire environments"),
        ("runs", "modelendpoint", "add_modelendpoint", "Can add model endpoint"),
        ("runs", "modelendpoint", "change_modelendpoint", "Can change model endpoint"),
        ("runs", "modelendpoint", "view_modelendpoint", "Can view model endpoint"),
    ],
    "Runner": [
        ("runs", "run", "add_run", "Can add run"),
        ("runs", "run", "change_run", "Can change run"),
        ("runs", "modelendpoint", "add_modelendpoint", "Can add model endpoint"),
        ("runs", "modelendpoint", "change_modelendpoint", "Can change model endpoint"),
        ("runs", "modelendpoint", "view_modelendpoint", "Can view model endpoint"),
    ],
    "Reviewer": [],
}


def make_groups(apps, schema_editor):
    # Django makes permissions after all migrations; those needed here are made now, as it would make them.
    group_model, permission_model = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    content_type_model = apps.get_model("contenttypes", "ContentType")
    for name, permissions in GROUPS.items():
        group, _ = group_model.objects.get_or_create(name=name)
        for app, model, codename, title in permissions:
            content_type, _ = content_type_model.objects.get_or_create(app_label=app, model=model)
            permission, _ = permission_model.objects.get_or_create(
                content_type=content_type, codename=codename, defaults={"name": title}
            )
            group.permissions.add(permission)


class Migration(migrations.Migration):
    dependencies = [
        ("llmeval_site", "0001_first_release"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("hub", "0001_first_release"),
        ("runs", "0001_first_release"),
    ]

    operations = [migrations.RunPython(make_groups, migrations.RunPython.noop)]
