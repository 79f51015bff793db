"""Missing responses: one definition for planning, resuming, progress and pages."""

from collections import Counter

import pytest

from hub.models import Case
from runs.missing import (
    count_expected,
    count_missing,
    count_missing_by_status,
    count_too_long,
    is_run_complete,
    missing_attempts,
)
from runs.models import Response, Run
from tests.factories import stored_outcomes, stored_run, stored_version

pytestmark = pytest.mark.django_db


def missing_of(run: Run) -> list[tuple[str, int]]:
    cases = list(Case.objects.order_by("position"))
    return [(case.external_id, n) for case, n in missing_attempts(run.models.get(), cases, run.attempts)]


def test_new_and_errored_responses_are_missing() -> None:
    run = stored_run(stored_version(cases=4))
    stored_outcomes(run, "pfe-")
    assert missing_of(run) == [("c2", 1), ("c3", 1)]
    assert (count_expected(run), count_missing(run), is_run_complete(run)) == (4, 2, False)


def test_unscored_responses_are_not_missing() -> None:
    run = stored_run(stored_version(cases=2))
    stored_outcomes(run, "pu")
    assert (missing_of(run), count_missing(run), is_run_complete(run)) == ([], 0, True)


def test_conversation_that_is_too_long_is_not_missing() -> None:
    run = stored_run(stored_version(cases=3))
    stored_outcomes(run, "pee")
    Response.objects.filter(case__external_id="c1").update(error_kind="too_long")
    assert (missing_of(run), count_missing(run), count_too_long(run)) == ([("c2", 1)], 1, 1)
    counts = Counter(Response.objects.values_list("status", flat=True))
    assert count_missing_by_status(run, counts) == 1
    Response.objects.filter(case__external_id="c2").update(status="passed")
    assert is_run_complete(run) and not is_run_complete(run, retry_too_long=True)


def test_further_attempts_are_missing_until_they_are_stored() -> None:
    run = stored_run(stored_version(cases=2), attempts=2)
    stored_outcomes(run, "pp")
    assert missing_of(run) == [("c0", 2), ("c1", 2)]
    assert count_missing(run) == 2


@pytest.mark.parametrize("models", [("alpha",), ("alpha", "beta")])
def test_each_model_needs_a_response_to_each_case(models: tuple[str, ...]) -> None:
    run = stored_run(stored_version(cases=3), models)
    assert count_missing(run) == count_expected(run) == 3 * len(models)


def test_number_of_missing_responses_is_the_same_from_stored_counts() -> None:
    run = stored_run(stored_version(cases=5))
    stored_outcomes(run, "pfeu-")
    counts = Counter(Response.objects.values_list("status", flat=True))
    assert count_missing_by_status(run, counts) == count_missing(run) == 2
