"""Factories for pairs that wait for review."""

from typing import Any

from django.contrib.auth.models import Permission, User

from hub.models import Environment
from preferences.evidence import evidence_of
from preferences.models import Preference
from preferences.services import JudgeIdentity, NewIssue, NewPreference, record_preference
from review.models import Pair
from runs.models import Run
from tests.factories import stored_response, stored_run, stored_score, stored_version


def reviewer(name: str = "ann") -> User:
    user = User.objects.create_user(name, password="secret")
    user.user_permissions.add(Permission.objects.get(codename="decide_pair"))
    return User.objects.get(pk=user.pk)


def waiting_pairs(
    count: int = 1,
    *,
    overlap: int = 1,
    texts: tuple[str, str] = ("one", "two"),
    outcome: str = "pp",
    prompt: str = "Add one.",
    **environment: Any,
) -> list[Pair]:
    """Create *count* pairs of one run. *outcome*: p (passed) or f (failed) for each side."""
    cases = [{"id": f"c{i}", "input": prompt} for i in range(count)]
    version = stored_version(f"sums{Environment.objects.count()}", cases, **environment)
    Environment.objects.filter(pk=version.environment_id).update(visibility="published")
    run = stored_run(version, ["alpha", "beta"])
    return [_pair(run, case, i, overlap, texts, outcome) for i, case in enumerate(version.cases.all())]


def _pair(run: Run, case: Any, position: int, overlap: int, texts: tuple[str, str], outcome: str) -> Pair:
    sides = []
    for model, text, letter in zip(("alpha", "beta"), texts, outcome, strict=True):
        response = stored_response(
            run,
            case,
            {"p": "passed", "f": "failed"}[letter],
            model=model,
            text=text,
            messages=[{"role": "user", "content": case.data["input"]}, {"role": "assistant", "content": text}],
        )
        stored_score(response, value=float(letter == "p"), reason=f"It says {text[:20]}.")
        sides.append(response)
    kind = {"pp": "both_pass", "ff": "both_fail"}.get(outcome, "one_passes")
    return Pair.objects.create(
        run=run, case=case, first=sides[0], second=sides[1], kind=kind, position=position, overlap=overlap, free=overlap
    )


def suggest(
    pair: Pair,
    verdict: str = "first",
    *,
    critique: str = "It is better.",
    issues: list[NewIssue] | None = None,
    **fields: Any,
) -> Preference:
    judge = JudgeIdentity(label="j", fingerprint="f" * 64, prompt_version="pair-1")
    preference = record_preference(
        NewPreference(
            first=pair.first,
            second=pair.second,
            verdict=verdict,
            fields={"critique": critique},
            **{"confidence": 0.75, **fields},
            issues=issues or [],
            evidence=evidence_of(pair.first, pair.second),
            judge=judge,
        )
    )
    pair.suggestion = preference
    pair.save(update_fields=["suggestion"])
    return preference
