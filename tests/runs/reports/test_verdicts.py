"""Sentences about the models of a run, and the tests on which they are based."""

import re

import pytest

from runs.reports.verdicts import verdicts
from runs.results.aggregate import aggregate_run
from runs.results.figures import CellResult
from tests.factories import stored_outcomes, stored_run, stored_version

pytestmark = pytest.mark.django_db


def results(outcomes: dict[str, str], slug: str = "sums") -> list[CellResult]:
    run = stored_run(stored_version(slug, cases=len(next(iter(outcomes.values())))), list(outcomes))
    for model, letters in outcomes.items():
        stored_outcomes(run, letters, model=model)
    return aggregate_run(run)


def test_model_with_a_lower_accuracy_is_better_if_it_is_on_the_cases_that_both_scored() -> None:
    # alpha scored the easy half only: 80 % of it, where beta passes all. beta has 70 % of all cases.
    cells = results({"alpha": "p" * 32 + "f" * 8 + "e" * 40, "beta": "p" * 40 + "p" * 16 + "f" * 24})
    (lead,) = cells[0].figures.leads
    assert (lead.cases, lead.difference) == (40, pytest.approx(-0.2))
    (sentence,) = verdicts(cells)
    assert sentence.startswith("beta is better than alpha on sums by 20.0 points [")
    assert sentence.endswith(
        "on the 40 cases that both scored, although alpha has the higher accuracy on its own cases."
    )


def test_models_without_a_common_case_are_not_compared() -> None:
    (sentence,) = verdicts(results({"alpha": "pppeee", "beta": "eeeppf"}))
    assert sentence == (
        "No model is shown to be better on sums: alpha and beta cannot be compared: no case was scored by both."
    )


@pytest.mark.parametrize(
    ("outcomes", "number"),
    [
        ({"alpha": "p"}, "(n = 1 case)."),
        ({"alpha": "p", "beta": "f"}, "(n = 1 case)."),
        ({"alpha": "pp", "beta": "ff"}, "(n = 2 cases)."),
    ],
)
def test_cases_are_counted(outcomes: dict[str, str], number: str) -> None:
    (sentence,) = verdicts(results(outcomes))
    assert sentence.endswith(number)


def test_correction_covers_every_two_models_because_the_best_one_is_chosen_from_the_results() -> None:
    # Seven flips: p = 2 / 2^7 = 0.0156. Three times it would be below 0.05, but there are six pairs of four models.
    worse = "p" * 13 + "f" * 7
    cells = results({"alpha": "p" * 20, "beta": worse, "gamma": worse, "delta": worse})
    assert [lead.p_adjusted for lead in cells[0].figures.leads] == [pytest.approx(6 * 2 / 2**7)] * 3
    (sentence,) = verdicts(cells)
    assert sentence.startswith("No model is shown to be better on sums")
    assert sentence.count("with 80 % power before Holm's correction") == 3
    assert sentence.count("; p is 0.0156, but 0.0938 after Holm's correction)") == 3


def test_correction_explains_an_interval_without_0_among_many_models() -> None:
    worse = ["p" * 13 + "f" * 7] * 4
    (sentence,) = verdicts(results(dict(zip("abcde", ["p" * 20, *worse], strict=True))))
    assert sentence.endswith("n = 20 cases; p is 0.0156, but 0.1562 after Holm's correction).")
    (sentence,) = verdicts(results(dict(zip("abcde", ["pppp", *["ppff"] * 4], strict=True)), "few"))
    assert "after Holm's correction" not in sentence


@pytest.mark.parametrize(
    ("models", "sentence"),
    [
        ("a", "a passes 100.0 % of sums (n = 2 cases, without an interval)."),
        (
            "ab",
            "No model is shown to be better on sums: "
            "a and b cannot be compared: an interval needs two clusters or more.",
        ),
        (
            "abcde",
            "No model is shown to be better on sums: "
            "4 cannot be compared with a: an interval needs two clusters or more.",
        ),
    ],
)
def test_results_of_one_cluster_have_no_interval(models: str, sentence: str) -> None:
    run = stored_run(stored_version(cases=[{"id": str(i), "row": {"cluster": 1}} for i in range(2)]), list(models))
    for model in models:
        stored_outcomes(run, "pp" if model == "a" else "pf", model=model)
    assert verdicts(aggregate_run(run)) == [sentence]


def test_correction_of_two_models_is_none() -> None:
    cells = results({"by alpha by": "p" * 20, "beta": "p" * 13 + "f" * 7})
    (lead,) = cells[0].figures.leads
    assert lead.p_adjusted == lead.p_value == pytest.approx(2 / 2**7)
    assert "Holm" not in verdicts(results({"gamma": "pppppppppf", "delta": "pppppppppp"}, "more"))[0]
    assert verdicts(cells)[0].startswith("by alpha by is better than beta on sums by 35.0 points [")


def test_sentence_about_many_models_counts_them_and_names_the_closest() -> None:
    outcomes = {f"model-{i:02}": "p" * i + "f" * (49 - i) for i in range(50)}
    (sentence,) = verdicts(results(outcomes))
    assert sentence.startswith("model-49 is better than 34 of the 49 other models on sums (than model-33, the closest")
    assert "; no difference from 15 is shown (from model-48, the closest of them, by 2.0 points [" in sentence
    assert len(set(re.findall(r"model-\d\d", sentence))) == 3 and len(sentence) < 300


@pytest.mark.parametrize(
    ("outcomes", "sentence"),
    [
        (
            ["p" * 40, *["f" * 40] * 4],
            r"a is better than all 4 other models on sums \(than b, the closest of them, by .*",
        ),
        (
            ["pppp", *["ppff"] * 4],
            r"No model is shown to be better on sums: no difference of a, the most accurate, from the 4 others is .*",
        ),
        (
            ["pppp----", *["ppff----"] * 3, "----ffff"],
            r".*\); 1 cannot be compared with a: no case was scored by both\.",
        ),
        (["p" * 40 + "-" * 9, *["f" * 40 + "-" * 9] * 3, "ppppp" + "-" * 44], r"a is better than 3 of the 4 other .*"),
    ],
)
def test_sentence_about_more_than_three_other_models(outcomes: list[str], sentence: str) -> None:
    (found,) = verdicts(results(dict(zip("abcde", outcomes, strict=True))))
    assert re.fullmatch(sentence, found), found


def test_better_models_on_common_cases_are_named_among_many() -> None:
    easy = dict.fromkeys("bcde", "p" * 80 + "p" * 32 + "f" * 48)
    (sentence,) = verdicts(results({"a": "p" * 64 + "f" * 16 + "e" * 80, **easy}))
    assert sentence.startswith("b is better than a on sums by 20.0 points [") and sentence.endswith("; so are 3 more.")
