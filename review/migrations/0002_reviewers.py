"""Who may review, and the first guidelines; curators edit these in the admin."""

from django.db import migrations

GUIDELINES = """\
Decide which response you would rather hand to the person who asked.

1. **Evidence first.** Where the tests pass on one side alone, that side is better. If a test itself is wrong, say \
what is wrong with it: a curator looks at it, and your verdict stands.
2. **Correct before nice.** Then complete, then clear, then short. Length is no merit.
3. **Tie** means equally good; **both bad** means that you would hand over neither.
4. **Mark the words.** Select what is wrong, choose a category, and say in a few words why.
5. The suggestion is a model's opinion and sometimes wrong. Look before you accept it.
"""


def seed(apps, schema_editor):
    apps.get_model("review", "Guideline").objects.create(title="How to decide", text=GUIDELINES)
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="review", model="pair"
    )
    # Django makes permissions after all migrations; this one is needed here and made as Django would make it.
    permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename="decide_pair", defaults={"name": "Can review pairs of responses"}
    )
    for name in ("Reviewer", "Curator"):
        group, _ = apps.get_model("auth", "Group").objects.get_or_create(name=name)
        group.permissions.add(permission)


class Migration(migrations.Migration):
    dependencies = [
        ("review", "0001_first_release"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
