"""Answers that mark no option, so that explanations after them were once read as the choice."""

import pytest

from hub.extraction import choice

FOUR = ["A", "B", "C", "D"]
CITIES = ["Paris", "London", "Rome", "Berlin"]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("The capital is Paris. Rome is in Italy.", "A"),
        ("Rome is in Italy. The capital is Paris.", "A"),
        ("The capital of France is Paris. It is bigger than Rome and Berlin.", "A"),
        ("The capital is Paris, which is larger than Rome.", "A"),
        ("While London is larger, the capital of France is Paris.", "A"),
        ("London is the capital of the UK. So Paris is right for France.", "A"),
        ("London is the capital of the UK, so it is not London. Paris is the capital.", "A"),
        ("Many people say it's London. But the capital is Paris.", "A"),
        ("After eliminating B (UK), C (Italy) and D (Germany), we are left with A.", "A"),
        ("A is the best choice. Option D would be right for Germany.", "A"),
        ("Option D would be right.", "D"),
        ("Paris is in France. Rome is in Italy.", None),
        ("Let's see. London is in the UK. Rome is in Italy. Berlin is in", None),
        ("Germany's capital is Berlin. France's capital is Paris.", None),
        ("The capital is Paris or Rome.", None),
    ],
)
def test_option_that_sentences_give_as_a_value_is_chosen(text: str, label: str | None) -> None:
    assert choice(text, FOUR, CITIES) == label


def test_last_of_several_numbers_that_a_calculation_gives_is_chosen() -> None:
    numbers = ["8", "12", "16", "20"]
    assert choice("2 × 4 is 8. Adding 4 gives 12.", FOUR, numbers) == "B"
    assert choice("The product is 12. It is less than 16.", FOUR, numbers) == "B"


def test_label_that_predominates_or_is_given_to_the_text_is_chosen() -> None:
    assert choice("I'd label it negative because nothing was positive.", ["positive", "negative"]) == "negative"
    assert choice("It's mostly positive with some negative remarks.", ["positive", "negative"]) == "positive"
    assert choice("It's not mostly positive; I'd call it negative.", ["positive", "negative"]) == "negative"


def test_first_sentence_that_is_a_label_or_an_option_decides() -> None:
    assert choice("The ribosome. It reads what comes from the nucleus.", ["A", "B"], ["nucleus", "ribosome"]) == "B"
    assert choice("True. It is false that whales are fish.", ["true", "false"]) == "true"
    assert choice("The review is negative. It says nothing positive.", ["positive", "negative"]) == "negative"
    assert choice("Overall it is negative, although parts are positive.", ["positive", "negative"]) == "negative"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The author is Dr. Seuss. Mark Twain wrote others.", "A"),
        ("Mr. Dahl is wrong. The author is Dr. Seuss.", "A"),
        ("The saint is St. Augustine. Dr. Seuss was a writer.", "C"),
        ("The author is Mark Twain. Dr. Seuss wrote others.", "B"),
        ("The company is U.S. Steel. Mark Twain was no owner.", "D"),
        ("U.S. Steel, because it is the oldest. Mark Twain never worked there.", "D"),
    ],
)
def test_full_stop_within_an_option_does_not_end_the_sentence(text: str, expected: str) -> None:
    options = ["Dr. Seuss", "Mark Twain", "St. Augustine", "U.S. Steel"]
    assert choice(text, "ABCD", options) == expected


@pytest.mark.parametrize("answer", ["- B", "> **B**", "- Paris", "- B) Paris"])
def test_bullet_before_a_stated_option_is_ignored(answer: str) -> None:
    text = f"So the answer is:\n\n{answer}\n\nLondon is larger."
    assert choice(text, FOUR, ["London", "Paris", "Rome", "Berlin"]) == "B"


@pytest.mark.parametrize("cross", ["✗", "✕", "❌"])
@pytest.mark.parametrize("tick", ["✓", "✔", "✅"])
def test_option_with_a_tick_after_its_explanation_is_chosen(tick: str, cross: str) -> None:
    options = [("A) London", cross), ("B) Paris", tick), ("C) Rome", cross), ("D) Berlin", cross)]
    text = "Each option:\n\n" + "\n".join(f"{option} - what is known of it. {mark}" for option, mark in options)
    assert choice(text, FOUR, ["London", "Paris", "Rome", "Berlin"]) == "B"


def test_first_line_that_is_a_label_decides_before_remarks_on_other_options() -> None:
    remarks = "A: London is in the UK.\nC: It is in Italy."
    assert choice(f"B\n\n{remarks}", FOUR, ["London", "Paris", "Rome", "Berlin"]) == "B"
    assert choice("A\n\nOn reflection:\n\nB", FOUR) == "B"


@pytest.mark.timeout(40)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Dr. Seuss " * 40_000, id="options"),
        pytest.param("Dr. " * 40_000, id="beginnings", marks=pytest.mark.exhaustive),
    ],
)
def test_many_options_with_a_full_stop_do_not_stall(text: str) -> None:
    """This takes a second. If each full stop were compared with each option, it would exceed the time limit."""
    choice(text, FOUR, ["Dr. Seuss", "Mark Twain", "St. Augustine", "U.S. Steel"])


@pytest.mark.parametrize(
    "text",
    [
        *("I choose 'B'.", "Hence option 'B'.", "It's 'B'", "The answer's B.", "It works => B", "Therefore ⇒ B"),
        *("B is the odd one out.", "The odd one out is Paris.", "Paris? Correct."),
        "A. Incorrect. B. Correct. C. Incorrect. D. Incorrect.",
    ],
)
def test_label_in_quotation_marks_after_an_arrow_or_in_a_contraction_is_chosen(text: str) -> None:
    assert choice(text, FOUR, ["London", "Paris", "Rome", "Berlin"]) == "B"


@pytest.mark.parametrize("aside", ["however", "of course", "on the other hand", "though"])
@pytest.mark.parametrize("option", ["B", "Paris"])
def test_option_that_is_rejected_after_an_aside_is_not_chosen(option: str, aside: str) -> None:
    assert choice(f"{option}, {aside}, is not correct.", FOUR, ["London", "Paris", "Rome", "Berlin"]) is None
    assert choice(f"{option}, {aside}, is wrong.", FOUR, ["London", "Paris", "Rome", "Berlin"]) is None
    assert choice(f"{option}? Wrong.", FOUR, ["London", "Paris", "Rome", "Berlin"]) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Between B and C, C.", "C"),
        ("Between B and C, I'd pick C.", "C"),
        ("Between B and C, C is better.", "C"),
        ("It is either A or C; C.", "C"),
        ("Torn between A and C; C.", "C"),
        ("It could be B or C, A", None),
        ("Between A and C, I can't decide.", None),
        ("By elimination, C.", "C"),
        ("Process of elimination leaves C.", "C"),
        ("That leaves us with C.", "C"),
        ("C is all that's left.", "C"),
        ("C (not A)", "C"),
        ("C — Rome (not A — Paris)", "C"),
    ],
)
def test_label_that_is_chosen_between_two_or_left_by_elimination_counts(text: str, label: str | None) -> None:
    assert choice(text, FOUR, CITIES) == label


@pytest.mark.parametrize("text", ["Rome (A)", "The answer is Rome (A).", "**Rome (option A)**"])
def test_option_with_the_label_of_another_one_chooses_none(text: str) -> None:
    assert choice(text, FOUR, CITIES) is None
    assert choice(text.replace("A)", "C)"), FOUR, CITIES) == "C"


def test_yes_and_no_after_options_choose_outside_of_tables() -> None:
    options = "A) Paris - No\nB) London - No\nC) Rome - Yes\nD) Berlin - No"
    assert choice(options, FOUR, CITIES) == "C"
    table = "| Option | In Italy? |\n|---|---|\n| A | No |\n| B | No |\n| C | **Yes** |\n| D | No |"
    assert choice(table, FOUR, CITIES) is None
