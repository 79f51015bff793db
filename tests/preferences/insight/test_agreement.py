"""Tests of agreement figures of stored verdicts against values computed by hand."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from hub.models import Case
from preferences.evidence import evidence_of
from preferences.insight.agreement import Agreement, compute_agreement
from preferences.insight.agreement_statistics import Figure
from preferences.insight.ranking import compute_rankings
from preferences.insight.verdicts import load_verdicts
from preferences.models import Preference
from preferences.selectors import current_preferences
from preferences.services import JudgeIdentity, NewPreference, Reaction, record_preference
from runs.models import Response, Run, RunModel
from tests.factories import stored_response, stored_run, stored_version

pytestmark = pytest.mark.django_db
WORDS = {"p": "passed", "f": "failed"}


def pairs_of(*outcomes: str, texts: Sequence[tuple[str, str]] = ()) -> list[tuple[Response, Response]]:
    """A pair of alpha's and beta's responses for each of *outcomes*, such as `pf`: alpha passed and beta failed."""
    run = stored_run(stored_version(cases=len(outcomes)), ["alpha", "beta"])
    made = []
    for i, case in enumerate(Case.objects.order_by("position")):
        said = texts[i] if texts else ("an answer", "another")
        first, second = (
            stored_response(
                run,
                case,
                WORDS[outcomes[i][side]],
                model=label,
                text=said[side],
                messages=[{"role": "user", "content": "?"}, {"role": "assistant", "content": said[side]}],
            )
            for side, label in enumerate(("alpha", "beta"))
        )
        made.append((first, second))
    return made


def judged(pair: tuple[Response, Response], verdict: str, **fields: Any) -> Preference:
    """The judge's verdict. `confidence` is the judgment's; all else says how it was reached."""
    confidence = fields.pop("confidence", None)
    judge = JudgeIdentity(**{"label": "judge", "fingerprint": "f", "prompt_version": "pair-1", **fields})
    return record_preference(
        NewPreference(
            first=pair[0],
            second=pair[1],
            verdict=verdict,
            evidence=evidence_of(*pair),
            judge=judge,
            confidence=confidence,
        )
    )


def decided(pair: tuple[Response, Response], verdict: str, by: str = "ann", **reaction: Any) -> Preference:
    person = User.objects.get_or_create(username=by)[0]
    return record_preference(
        NewPreference(
            first=pair[0],
            second=pair[1],
            verdict=verdict,
            evidence=evidence_of(*pair),
            reviewer=person,
            reaction=Reaction(**reaction),
            seconds=20.0,
        )
    )


def found() -> Agreement:
    return compute_agreement(current_preferences())


def figures() -> dict[str, Figure]:
    return {name: item for name, _, item in found().figures}


def worth(name: str) -> tuple[float | None, int]:
    """A figure's value and n."""
    item = figures()[name]
    return item.value, item.n


def test_agreement_of_judge_and_reviewers() -> None:
    verdicts = [("first", "first"), ("first", "second"), ("second", "second"), ("tie", "tie")]
    for pair, (judge, person) in zip(pairs_of("ff", "ff", "ff", "ff", "ff"), [*verdicts, ("", "tie")], strict=True):
        if judge:
            judged(pair, judge)
        decided(pair, person)  # the last pair has no judge's verdict to compare with
    # judge: 2 first, 1 second, 1 tie; ann: 1 first, 2 second, 1 tie. po = 3/4, pe = (2*1 + 1*2 + 1*1) / 16 = 5/16
    assert worth("judge_people") == (0.75, 4)
    assert worth("judge_people_kappa") == (pytest.approx((3 / 4 - 5 / 16) / (1 - 5 / 16)), 4)


def test_agreement_between_reviewers() -> None:
    said = [("first", "first"), ("first", "second"), ("second", "second"), ("tie", "first")]
    pairs = pairs_of("ff", "ff", "ff", "ff", "ff")
    for pair, (ann, bob) in zip(pairs, said, strict=False):
        decided(pair, ann, "ann")
        decided(pair, bob, "bob")
    decided(pairs[4], "tie", "bob")  # a single one compares with nothing
    assert worth("people") == (0.5, 4)
    # 8 labels on 4 pairs: 4 first, 3 second, 1 tie. Do = 4 and De = (4*4 + 3*5 + 1*7) / 7
    assert worth("people_alpha") == (pytest.approx(1 - 4 / (38 / 7)), 4)
    # ann: 2 first, 1 second, 1 tie; bob: 2 first, 2 second. po = 1/2, pe = (2*2 + 1*2) / 16 = 3/8
    (both,) = found().reviewer_pairs
    assert both.names == ("ann", "bob")
    assert (both.blind.value, both.blind_kappa.value, both.blind_kappa.n) == (
        0.5,
        pytest.approx((1 / 2 - 3 / 8) / (5 / 8)),
        4,
    )


def test_three_reviewers_of_pair_are_three_comparisons() -> None:
    (pair,) = pairs_of("ff")
    for name, verdict in (("ann", "first"), ("bob", "first"), ("cid", "tie")):
        decided(pair, verdict, name)
    assert worth("people") == (pytest.approx(1 / 3), 3)
    # Do = (2*1 + 1*2) / 2 = 2 and De = (2*1 + 1*2) / 2 = 2
    assert worth("people_alpha") == (0.0, 1)
    assert [row.names for row in found().reviewer_pairs] == [("ann", "bob"), ("ann", "cid"), ("bob", "cid")]


def test_agreement_of_blind_judge_and_reviewers_with_execution() -> None:
    pairs = pairs_of("pf", "fp", "pf", "ff")
    judged(pairs[0], "first")
    judged(pairs[1], "tie")
    judged(pairs[2], "second", saw_evidence=True)  # it knew, so that it says nothing
    judged(pairs[3], "first")  # the tests decide nothing
    decided(pairs[0], "first", "ann")
    decided(pairs[0], "first", "bob")
    decided(pairs[1], "first", disputes_tests=True)
    assert worth("judge_execution") == (0.5, 2)
    assert worth("people_execution") == (pytest.approx(2 / 3), 3)


def test_position_bias_is_calculated_from_single_orders() -> None:
    pairs = pairs_of("ff", "ff", "ff", "ff")
    judged(pairs[0], "tie", orders=("first", "second"), order_sensitive=True)  # the side shown first, twice
    judged(pairs[1], "first", orders=("first", "first"))  # once
    judged(pairs[2], "tie", orders=("tie", "second"), order_sensitive=True)  # once of one
    judged(pairs[3], "second", orders=("second", "second"))  # once
    assert worth("first_position") == (pytest.approx(5 / 7), 7)
    assert worth("order_sensitive") == (0.5, 4)


def test_judge_with_consistent_verdicts_has_no_position_bias() -> None:
    for pair in pairs_of("ff", "ff", "ff"):
        judged(pair, "first", orders=("first", "first"))
    assert worth("first_position") == (0.5, 6)


def as_families(run: Run, **families: str) -> None:
    """Give the models of *run* families; the judge's row is made."""
    for model in run.models.all():
        model.spec["family"] = families[model.label]
        model.save()
    spec = {"name": "judge", "family": families["judge"]}
    RunModel.objects.create(run=run, label="judge", role="judge", position=9, spec=spec, fingerprint="f")


def test_self_preference_is_relative_to_tests_and_reviewers() -> None:
    pairs = pairs_of("fp", "ff", "ff", "ff")
    as_families(Run.objects.get(), alpha="gpt", beta="llama", judge="gpt")
    mine = {"self_preference": True}
    judged(pairs[0], "first", **mine)  # for its own family, where the tests are for the other: +1
    judged(pairs[1], "tie", **mine)  # half, where ann is for its own: -1/2
    decided(pairs[1], "first")
    judged(pairs[2], "first", **mine)  # as ann
    decided(pairs[2], "first")
    judged(pairs[3], "second", **mine)  # nobody else says
    assert worth("own_family") == (pytest.approx(2 / 3), 3)
    assert worth("own_family_excess") == (pytest.approx((1 - 0.5 + 0) / 3), 3)


def test_self_preference_needs_exactly_one_side_of_the_family() -> None:
    (pair,) = pairs_of("ff")
    as_families(Run.objects.get(), alpha="gpt", beta="gpt", judge="gpt")
    judged(pair, "first", self_preference=True)
    assert worth("own_family") == (None, 0)


def test_self_preference_uses_the_family_of_the_judge_if_its_model_has_other_roles() -> None:
    (pair,) = pairs_of("ff")
    run = Run.objects.get()
    as_families(run, alpha="gpt", beta="", judge="gpt")
    RunModel.objects.create(run=run, label="judge", role="rubric", position=0, spec={"name": "judge"}, fingerprint="f")
    judged(pair, "first", self_preference=True)
    assert worth("own_family") == (1.0, 1)


def test_length_correlation_uses_decisive_verdicts() -> None:
    texts = [("aaa", "a"), ("a", "aa"), ("aa", "a"), ("a", "a"), ("aaaaaa", "a")]
    pairs = pairs_of("ff", "ff", "ff", "ff", "ff", texts=texts)
    for pair, verdict in zip(pairs, ("first", "second", "second", "first", "tie"), strict=True):
        judged(pair, verdict)
    # differences 2, -1, 1, 0 against 1, 0, 0, 1: sum of products 1, squares 5 and 1
    assert worth("length") == (pytest.approx(1 / math.sqrt(5)), 4)


def test_length_correlation_counts_answers_in_files(settings: Any) -> None:
    settings.LARGE_TRANSCRIPT_BYTES = 200
    pairs = pairs_of("ff", "ff", "ff", texts=[("a" * 5000, "a"), ("a", "a" * 300), ("a", "a" * 400)])
    for pair in pairs:
        judged(pair, "first")
    assert [row.length_difference for row in load_verdicts(current_preferences())] == [-399, -299, 4999]


def test_acceptance_of_shown_and_hidden_suggestions() -> None:
    pairs = pairs_of("ff", "ff", "ff", "ff", "pf")
    suggested = [judged(pair, "first") for pair in pairs]
    now = timezone.now()
    decided(pairs[0], "first", suggestion=suggested[0], taken=True, seen_at=now)
    decided(pairs[1], "second", suggestion=suggested[1], taken=False, seen_at=now)
    decided(pairs[2], "first", suggestion=suggested[2], taken=True, seen_at=now, first_verdict="first")
    decided(pairs[3], "first", suggestion=suggested[3], taken=True, seen_at=now, first_verdict="second")
    decided(pairs[4], "second", check_result="failed")  # a check shows no suggestion of the judge's
    assert worth("accept_shown") == (0.5, 2)
    assert worth("accept_hidden") == (0.5, 2)
    (ann,) = found().reviewers
    assert (ann.decided, ann.accepted, ann.suggested, ann.checks, ann.checks_failed) == (5, 3, 4, 1, 1)
    assert ann.median_seconds == 20


def test_calibration_reference_is_execution_else_unanimous_reviewers() -> None:
    pairs = pairs_of("pf", "ff", "ff", "ff")
    judged(pairs[0], "first", confidence=0.9)
    judged(pairs[1], "first", confidence=0.9)
    decided(pairs[1], "second")
    judged(pairs[2], "first", confidence=0.55)
    decided(pairs[2], "first", "ann")
    decided(pairs[2], "tie", "bob")  # people who differ decide nothing
    judged(pairs[3], "first", confidence=0.3)
    decided(pairs[3], "first")
    assert [(b.confidence, b.correct, b.n) for b in found().bins] == [(0.3, 1.0, 1), (0.9, 0.5, 2)]
    assert worth("calibration_error") == (pytest.approx((1 * 0.7 + 2 * 0.4) / 3), 3)


def test_calibration_leaves_out_ties_of_orders_that_disagree() -> None:
    pairs = pairs_of("pf", "pf", "ff")
    judged(pairs[0], "first", confidence=0.9)
    judged(pairs[1], "tie", confidence=0.9, order_sensitive=True)
    judged(pairs[2], "tie", confidence=0.6)  # both orders say so
    decided(pairs[2], "tie")
    assert [(b.confidence, b.correct, b.n) for b in found().bins] == [(0.6, 1.0, 1), (0.9, 1.0, 1)]
    assert worth("calibration_error") == (pytest.approx((0.4 + 0.1) / 2), 2)
    assert worth("order_sensitive") == (pytest.approx(1 / 3), 3)


def test_figures_without_verdicts_have_a_note() -> None:
    assert {(item.value, item.n, item.note) for item in figures().values()} == {(None, 0, "nothing to compare yet")}
    assert found().to_json()["two_reviewers"] == []


def test_ranking_counts_both_bad_as_tie() -> None:
    pairs = pairs_of("ff", "ff", "ff", "ff")
    for pair, verdict in zip(pairs, ("first", "first", "tie", "both_bad"), strict=True):
        decided(pair, verdict)
    alpha, beta = compute_rankings(current_preferences())["sums"].models
    assert (alpha.name, alpha.wins, alpha.matches, beta.wins) == ("alpha", 3.0, 4, 1.0)
    # 3 wins to 1, with half a win added on either side
    assert alpha.strength - beta.strength == pytest.approx(400 * math.log10(3.5 / 1.5), abs=0.01)


def test_self_preference_is_independent_of_side() -> None:
    pairs = pairs_of("fp", "ff")
    as_families(Run.objects.get(), alpha="llama", beta="gpt", judge="gpt")
    judged(pairs[0], "first", self_preference=True)  # against its own family, where the tests are for it: -1
    judged(pairs[1], "second", self_preference=True)  # for its own, where ann sees no difference: +1/2
    decided(pairs[1], "tie")
    assert worth("own_family") == (0.5, 2)
    assert worth("own_family_excess") == (pytest.approx((-1 + 0.5) / 2), 2)


def test_ranking_ignores_pairs_of_one_model() -> None:
    run = stored_run(stored_version(cases=1), ["alpha"])
    first, second = (stored_response(run, Case.objects.get(), "failed", attempt=attempt) for attempt in (1, 2))
    decided((first, second), "first")
    assert compute_rankings(current_preferences()) == {}


def test_ranking_counts_one_verdict_per_pair() -> None:
    pairs = pairs_of("ff", "ff")
    judged(pairs[0], "second")
    decided(pairs[0], "first", "ann")  # a person's counts before the judge's
    decided(pairs[0], "first", "bob")  # and once
    judged(pairs[1], "first")
    alpha, beta = compute_rankings(current_preferences())["sums"].models
    assert (alpha.wins, alpha.matches, beta.wins) == (2.0, 2, 0.0)


def test_ranking_ignores_pairs_on_which_reviewers_disagree() -> None:
    pairs = pairs_of("ff", "ff")
    decided(pairs[0], "first", "ann")
    decided(pairs[0], "second", "bob")
    judged(pairs[0], "first")
    decided(pairs[1], "second", "ann")
    alpha, _ = sorted(compute_rankings(current_preferences())["sums"].models, key=lambda row: row.name)
    assert (alpha.wins, alpha.matches) == (0.0, 1)


def test_ranking_ignores_failed_attention_checks() -> None:
    pairs = pairs_of("ff", "ff")
    decided(pairs[0], "first", check_result="failed")
    decided(pairs[1], "second")
    alpha, _ = sorted(compute_rankings(current_preferences())["sums"].models, key=lambda row: row.name)
    assert (alpha.wins, alpha.matches) == (0.0, 1)


def test_ranking_reports_unconnected_models() -> None:
    version = stored_version(cases=1)
    for labels in (["a", "b"], ["c", "d"]):
        run = stored_run(version, labels)
        first, second = (stored_response(run, Case.objects.get(), "failed", model=label) for label in labels)
        decided((first, second), "first")
    found = compute_rankings(current_preferences())["sums"]
    assert found.models == []
    assert "no comparison connects them: a, b; c, d." in found.problem


def test_agreement_uses_verdicts_given_before_suggestion() -> None:
    pairs = pairs_of("ff", "ff", "ff", "ff")
    judge = [judged(pair, "first") for pair in pairs]
    now = timezone.now()
    decided(pairs[0], "first", suggestion=judge[0], taken=True, seen_at=now, first_verdict="second")  # gave way
    decided(pairs[1], "first", suggestion=judge[1], taken=True, seen_at=now, first_verdict="first")
    decided(pairs[2], "first", suggestion=judge[2], taken=True, seen_at=now)  # saw it at once
    decided(pairs[3], "second")  # saw none
    assert worth("judge_people") == (pytest.approx(1 / 3), 3)
    assert worth("judge_people_final") == (0.75, 4)
    assert figures()["judge_people_kappa"].n == 3
    assert figures()["judge_people_final_kappa"].n == 4


def test_reviewer_agreement_uses_blind_verdicts() -> None:
    (pair,) = pairs_of("ff")
    suggestion, now = judged(pair, "first"), timezone.now()
    decided(pair, "first", "ann", suggestion=suggestion, taken=True, seen_at=now, first_verdict="second")
    decided(pair, "first", "bob", suggestion=suggestion, taken=True, seen_at=now, first_verdict="first")
    assert (worth("people"), worth("people_final")) == ((0.0, 1), (1.0, 1))
    (both,) = found().reviewer_pairs
    assert (both.blind.value, both.final.value) == (0.0, 1.0)
    (row,) = found().to_json()["two_reviewers"]
    assert (row["agreement"]["value"], row["agreement_final"]["value"]) == (0.0, 1.0)


def test_calibration_ignores_verdicts_given_after_suggestion() -> None:
    (pair,) = pairs_of("ff")
    suggestion = judged(pair, "first", confidence=0.9)
    decided(pair, "first", suggestion=suggestion, taken=True, seen_at=timezone.now())
    assert found().bins == []


def test_figure_without_blind_verdicts_has_a_note() -> None:
    (pair,) = pairs_of("ff")
    suggestion = judged(pair, "first")
    decided(pair, "first", suggestion=suggestion, taken=True, seen_at=timezone.now())
    headline = figures()["judge_people"]
    assert (headline.value, headline.n, headline.note) == (None, 0, "no verdict was given before a suggestion was seen")
    assert worth("judge_people_final") == (1.0, 1)


def test_verdict_on_attention_check_is_not_blind() -> None:
    (pair,) = pairs_of("ff")
    judged(pair, "first")
    decided(pair, "second", seen_at=timezone.now(), check_result="failed")
    assert worth("judge_people") == (None, 0)
