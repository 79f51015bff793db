"""Answers that mark no number, so that what follows it was once read as the answer."""

import pytest

from hub.extraction import number, read_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"value": 42, "steps": 3}', 42),
        ('```json\n{"value": 42, "steps": 3}\n```', 42),
        ('{"reasoning": "6 * 7, then 43 - 1", "total": 42}', 42),
        ('{"solution": 42, "confidence": 0.95}', 42),
        ("366 downloads over the 3 months.", 366),
        ("About 8 billion people live on Earth as of 2022.", 8),
        ("About 42 people live there as of January 2022.", 42),
        ("Each team fields 11 players, including 1 goalkeeper.", 11),
        ("17 is the only prime among 15, 16, 17 and 18.", 17),
        ("Sum = **5,050** (Gauss: n(n+1)/2 with n = 100)", 5050),
        ("Step 1: 5 - 2 = 3\nStep 2: Done.", 3),
        ("5 boxes * 12 eggs/box = 60 eggs", 60),
        ("So in total 7 days * 24 hours/day = 168 hours.", 168),
        ("Per day: $198.\n5 days × $198/day = $990", 990),
        ("By Pythagoras, c = sqrt(9 + 16) = 5.", 5),
        ("There are 4 primes between 10 and 20.", 4),
        ("The difference between 10 and 4 is 6.", 6),
        ("4 primes: 11, 13, 17, 19", 4),
        ("There are 40 left of the 50.", 40),
        ("2 and a half hours", 2.5),
        ("It is 3 and three quarters.", 3.75),
        ("It is 5 mol⁻¹.", 5),
        ("g = 9.8 m s⁻²", 9.8),
        ("10⁻³", 0.001),
    ],
)
def test_number_is_not_taken_from_what_follows_the_answer(text: str, value: float) -> None:
    found = read_number(text).quantity
    assert found is not None
    assert float(found.value) in (value, value * 10**9)


@pytest.mark.parametrize("text", ["x = 2 / y = 3", "x = 2, y = 3", "Answer: x = 2/x = 3", "Between 3 and 5"])
def test_assignments_of_different_numbers_give_no_single_number(text: str) -> None:
    assert read_number(text).several


def test_object_with_several_numbers_gives_no_single_number() -> None:
    assert read_number('{"total": 42, "items": 3}').several
    assert number('{"value": null, "note": "none"}') is None
    assert number('{"value": 1e400, "steps": 3}') == 3


@pytest.mark.parametrize("text", ["3 : 2", "The ratio is 3 : 2.", "answer = 3 : 2", "Answer: 3 : 2", r"\boxed{3 : 2}"])
def test_ratio_with_spaces_is_no_single_number(text: str) -> None:
    assert read_number(text).several
    assert number("Step 2 : 42") == 42
    assert number("20 : 4 = 5") == 5
