"""The categories that fit answers with Python code; curators edit them in the admin."""

from django.db import migrations

CATEGORIES = [
    ("wrong-result", "Wrong result", "The answer, or what the code computes, is wrong."),
    ("edge-case", "Edge case", "Right in general, wrong for empty, extreme or unusual input."),
    ("exception", "Exception", "The code raises, or does not compile."),
    ("efficiency", "Efficiency", "Needlessly slow, or wasteful of memory."),
    ("security", "Security", "Opens a hole: injection, unsafe evaluation, leaked secrets."),
    ("readability", "Readability", "Hard to follow: names, structure, needless cleverness."),
    ("style", "Style", "Against the usual conventions, without being hard to read."),
    ("ignores-instructions", "Ignores instructions", "Does not do what was asked, or does what was forbidden."),
    ("hallucinated-api", "Hallucinated API", "Uses a function, argument, tool or fact that does not exist."),
    ("incomplete", "Incomplete", "Something that was asked for is missing or cut off."),
]


def seed(apps, schema_editor):
    model = apps.get_model("preferences", "IssueCategory")
    for position, (slug, title, description) in enumerate(CATEGORIES, 1):
        model.objects.get_or_create(
            slug=slug, defaults={"title": title, "description": description, "position": position}
        )


class Migration(migrations.Migration):
    dependencies = [("preferences", "0001_first_release")]
    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
