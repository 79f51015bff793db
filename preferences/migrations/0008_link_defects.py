"""Earlier preferences that overrule the tests are linked to their claims."""

from django.db import migrations


def link_claims(apps, schema_editor):
    """Link each to its reviewer's claim about the case: the one nearest in time."""
    Preference, CaseDefect = apps.get_model("preferences", "Preference"), apps.get_model("hub", "CaseDefect")
    disputing = Preference.objects.filter(disputes_tests=True, defect=None, reviewer__isnull=False)
    for preference in disputing.only("pk", "case_id", "reviewer_id", "created_at"):
        claims = CaseDefect.objects.filter(case=preference.case_id, reported_by=preference.reviewer_id)
        moment = preference.created_at
        nearest = min(claims, key=lambda claim: abs((claim.created_at - moment).total_seconds()), default=None)
        if nearest is not None:
            Preference.objects.filter(pk=preference.pk).update(defect=nearest)


class Migration(migrations.Migration):

    dependencies = [
        ('preferences', '0007_defects'),
    ]

    operations = [migrations.RunPython(link_claims, migrations.RunPython.noop)]
