"""Extraction of numbers, choices, final answers and JSON from answers as models write them."""

import tracemalloc
from fractions import Fraction

import pytest

from hub.extraction import (
    choice,
    complete_json,
    final_answer,
    json_values,
    number,
    quantity,
    read_number,
    without_reasoning,
)
from tests.sampling import sampled

# ---- reasoning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("◁think▷hm◁/think▷42", "42"),
        ("[THINK]hm[/THINK]42", "42"),
        ("<THINK>I should use <think> tags.</THINK>42", "42"),
        ("hm\n</think>\nAnswer: 42", "Answer: 42"),
        ('text = re.sub(r"<think>.*?</think>", "", text)', 'text = re.sub(r"<think>.*?</think>", "", text)'),
        ("if '</think>' in text:\n    pass", "if '</think>' in text:\n    pass"),
        ("Wrap it in `<think>`, please.", "Wrap it in `<think>`, please."),
    ],
)
def test_quoted_reasoning_tags_are_ignored(text: str, rest: str) -> None:
    assert without_reasoning(text) == rest


# ---- the final answer ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "introduction",
    [
        "The answer is:",
        "So the final answer is:",
        "**Therefore, the correct answer is:**",
        "Hence, the correct option is:",
        "In conclusion, the answer is",
        "Thus, the answer:",
    ],
)
@pytest.mark.parametrize("answer", ["Paris", "**Paris**.", "$$Paris$$", "\\[\nParis\n\\]", "---\n\nParis"])
def test_line_after_an_introduction_is_the_final_answer(introduction: str, answer: str) -> None:
    assert final_answer(f"It is in France.\n\n{introduction}\n\n{answer}\n\nIt lies on the Seine.") == "Paris"


def test_line_after_an_introduction_within_a_sentence_is_no_final_answer() -> None:
    assert final_answer("Let us see what the answer is:\n\nFirst add 5 and 3.") is None


@pytest.mark.parametrize(
    "introduction", ["Here is the answer:", "The final answer is as follows:", "The answer is below."]
)
def test_introduction_of_an_explanation_is_no_introduction_of_the_answer(introduction: str) -> None:
    assert final_answer(f"{introduction}\n\n**Paris**") == "Paris"
    explanation = f"{introduction}\n\nFirst, compute 3 * 4 = 12.\n\nThen add 5, which gives 17."
    assert final_answer(explanation) is None
    assert number(explanation) == 17


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is **Paris**, the capital of France.", "Paris"),
        ("The answer is **Paris** because it is the capital.", "Paris"),
        ("The answer is **Paris**, **Lyon**.", "Paris**, **Lyon"),
        ("The answer is **5** km.", "5** km"),
        ("The answer is **not** Paris.", "not** Paris"),
        ("The answer is **Paris**, Lyon and Nice.", "Paris**, Lyon and Nice"),
    ],
)
def test_clause_after_an_answer_in_bold_is_not_part_of_it(text: str, answer: str) -> None:
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>Paris</answer>", "Paris"),
        ("<final_answer>Paris</final_answer>", "Paris"),
        ("Final answer → Paris", "Paris"),
        ("Answer => Paris", "Paris"),
        ("Answer\n------\n\nParis", "Paris"),
        ("The city.\n<answer>\nParis", "Paris"),
        ("**Answer**: Paris", "Paris"),
        ("### Answer\n\n**Paris**", "Paris"),
        ("Final Answer (city):\n\nParis", "Paris"),
        ("Answer: U.S.", "U.S."),
        ("Answer: The answer is Paris.", "Paris"),
        ("The answer is Paris. It lies on the Seine.", "Paris"),
        ("The answer is not Rome.\nThe answer is Paris.", "Paris"),
        ("**Answer: Paris**\n\nWhy? The answer would be Rome if it were Italy.", "Paris"),
        ("#### Step 1\nThink.\n\n#### Paris", "Paris"),
        ("#### Conclusion\nIt is Paris.", None),
        ("\\boxed{\\text{Paris}}, as I said. The answer is in the box.", "Paris"),
    ],
)
def test_strongest_mark_decides_the_final_answer(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


# ---- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("**Final Answer:** \\boxed{1{,}234}", 1234),
        ("Answer: 2 1/2", Fraction(5, 2)),
        ("Answer: 2½", Fraction(5, 2)),
        ("Answer: 1.234,56 EUR", Fraction("1234.56")),
        ("Answer: 1'234", 1234),
        ("Answer: 5, because 3 + 2 = 5 and not 6", 5),
        ("Answer: 5, since 2 = 2", 5),
        ("So the answer is 10 - 4 = 6.", 6),
        ("Answer: 7 - it is prime", 7),
        ("### Answer\n\n42 apples", 42),
        ("It fell by –3", -3),
        ("Answer: x=-4", -4),
        ("- 5 apples", 5),
        ("Answer: 10^5", 100_000),
        ("Answer: 2^{10}", 1024),
        ("Answer: 10⁵", 100_000),
        ("Answer: 3*10^8 m/s", 300_000_000),
        ("#### 1. Step one\nfoo\n#### 2. Step two\nThe answer is 17.", 17),
        ("\\boxed{42}\n\nTo check the answer: 6*7 = 42 and 6+1=7", 42),
        ("She has 3 apples (2nd grade)", 3),
        ("\\boxed{\\text{42 dollars}}", 42),
        ("Answer: £1,000,000 (one million)", 1_000_000),
        ("The final answer is: $\\boxed{18}$. I hope it is correct.", 18),
        ("The answer is below.\n\n42", 42),
        ("Answer: ４２", 42),
    ],
)
def test_number_is_read_with_markup_and_units(text: str, value: Fraction | int) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "The range is 3–5",
        "Answer: 18 or 19",
        "Answer: 17-19",
        "18, 19, 20",
        "\\boxed{(3, 4)}",
        "\\boxed{3} or \\boxed{4}",
        "Answer: 18\nor\nAnswer: 19",
        "The answer is 18. Or maybe 19.",
        "The answer is 18, although 19 is possible.",
        "<answer>18 or 19</answer>",
        '{"answer": [18, 19]}',
        "#### 18 or 19",
    ],
)
def test_alternatives_ranges_and_lists_give_no_number(text: str) -> None:
    reading = read_number(text)
    assert (reading.quantity, reading.several) == (None, True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The answer is 99. Wait, that is wrong. The answer is 18.", 18),
        ("\\boxed{99}\n\nWait, I forgot a step. The answer is 18.", 18),
        ("Answer: 99. Sorry, it should be 18.", 18),
        ("Answer: 99, no wait, 18", 18),
        ("So the answer is 18. Let me double-check: 18 / 3 = 6. Correct.", 18),
        ("Either 18 or 19. I'll go with 18.", 18),
    ],
)
def test_correction_replaces_earlier_numbers(text: str, value: int) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    ("target", "written", "same"),
    [
        ("50", "50%", True),
        ("0.5", "50 percent", True),
        ("50%", "0.5", True),
        ("50%", "0.5%", False),
        ("3000000", "$3 million", True),
        ("3", "3 million", True),
        ("3 million", "3 billion", False),
        ("0.25", "50%", False),
    ],
)
def test_percent_sign_and_scale_word_may_be_omitted_on_one_side(target: str, written: str, same: bool) -> None:
    wanted, found = quantity(target), quantity(f"Answer: {written}")
    assert wanted is not None
    assert found is not None
    assert wanted.near(found, Fraction(1, 10**6)) is same


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The answer is 11. Wait, that's the number of boys. In total it is 12.", 12),
        ("The answer is 12. Wait, that's correct: 3 × 4 = 12.", 12),
        ("Answer: 90 minutes (or 1.5 hours)", 90),
        ("It takes 3 km, or 3000 m.", 3),
        ("It is 5/12 (or about 0.417).", Fraction(5, 12)),
        ("Answer: 3 km (or 4000 m)", None),
        ("So they are 12. (There are 3 children.)", 12),
        ("So they are 12. (Or maybe 11.)", None),
        ("It was 4.5 degrees below zero.", Fraction(-9, 2)),
        ("气温是零下13度。", -13),
        ("It is twenty-five hundredths.", Fraction(1, 4)),
        ("It is two and five twelfths.", Fraction(29, 12)),
        ("That is 5 twelfths of an hour.", Fraction(5, 12)),
        ("一天有24小时，所以是1440分钟。", 1440),
        ("답은 3억5000만입니다.", 350_000_000),
        ("The formula is n^2 + 1.", None),
        ("It follows from (a+b)/2.", None),
        ("By n(n+1)/2 the sum is 210.", 210),
        ("One box holds 12. Divide that by 4.", None),
        ("Double that and you have 2880.", 2880),
        ("To find the total of the two, simply add 10+20=30 eggs.", 30),
        ("320 by one reading, 224 by the other. It isn't clear which case applies.", None),
        ("I'm not sure which base you mean, but it's 40%.", 40),
        ("She has 9 marbles left, which is 3 fewer than before.", 9),
        ("She has 9 marbles left, 3 fewer than before.", 9),
        ("It will take him 3 hours to finish all 12 pages.", 3),
        ("14 / 4 = 3 remainder 2", None),
    ],
)
def test_numbers_in_remarks_are_ignored(text: str, value: Fraction | int | None) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    "written", ["5,1 Millionen Dollar", "5,1 Mio. €", "5,1 millones", "5,1 млн", "510万美元", "510만 달러"]
)
def test_scale_words_of_other_languages(written: str) -> None:
    found, target = quantity(f"**{written}**"), quantity("5100000")
    assert found is not None
    assert target is not None
    assert target.near(found, Fraction(0))


# ---- choices ---------------------------------------------------------------------------------------------------------

OPTIONS = ["Paris", "London", "Rome", "A new town"]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("(b)", "B"),
        ("b)", "B"),
        ("The answer is A new town", "D"),
        ("The answer is A because it is.", "A"),
        ("A train leaves the station. I think Rome.", "C"),
        ("$\\boxed{\\textbf{(D)}}$", "D"),
        ("The capital is London.", "B"),
        ("A) Paris is wrong.\nB) London is right.\nC) Rome is wrong.\nD) No.\n\nSo the answer is B.", "B"),
        ("Option A is wrong. Option B is correct.", "B"),
        ("answer: (d) A new town", "D"),
        ("The answer is a city called London", "B"),
        ("My choice: B", "B"),
        ("I choose C", "C"),
        ("I think it's B because of the Thames", "B"),
        ("**Answer: B**\n\nExplanation: A is wrong since (A) is far.", "B"),
        ("(A) no. (B) no. (C) yes, this fits.\n\nTherefore, (C).", "C"),
        ("It's not A. The answer is not B. The answer is C", "C"),
        ("B is correct, since A is not.", "B"),
        ("The answer is B, not C.", "B"),
        ("Ｂ", "B"),
    ],
)
def test_choice_by_letter_or_option_text_at_the_end(text: str, label: str) -> None:
    assert choice(text, list("ABCD"), OPTIONS) == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("I'd pick C here.", "C"),
        ("The description matches option C best.", "C"),
        ("Nothing matches option C best.", None),
        ("Por lo tanto, la respuesta C.", "C"),
        ("C (Rome), closely followed by A (Paris)", "C"),
        ("A. Wait, that's the older one. The other has a river, which is C.", "C"),
        ("It could be option A or option B.", None),
        ("Might be A or B; London is large.", None),
        ("Answer: A ✅", "A"),
        ("Ans: (c)", "C"),
        ("I think the answer is B. Wait, no: A.", "A"),
        ("After weighing A vs. B, B wins.", "B"),
        ("B wins on speed, but A is correct.", "A"),
        ("That would be A.", "A"),
        ("It has to be A.", "A"),
        ("That's A!", "A"),
        ("Going with A.", "A"),
        ("Not going with A.", None),
        ("A, I'm fairly sure.", "A"),
        ("A most likely.", "A"),
        ("A most likely reading is London.", "B"),
        ("**Letter:** A", "A"),
        ("So B is out, C is out and D is out.", "A"),
        ("So B is the one.", "B"),
    ],
)
def test_choosing_and_undecided_sentences_are_distinguished(text: str, label: str | None) -> None:
    assert choice(text, list("ABCD"), OPTIONS) == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("So you'd pay eight dollars for 12 pens.", "B"),
        ("So you'd pay six or eight dollars.", None),
        ("It's not eight dollars.", None),
        ("There are 8 pens.", None),
    ],
)
def test_option_with_an_amount_is_matched_in_words(text: str, label: str | None) -> None:
    assert choice(text, list("ABC"), ["$6", "$8", "$24"]) == label


@pytest.mark.parametrize(
    "text",
    [
        "Answer: A or B",
        "Answer: A, B",
        "A dog is a mammal.",
        "A) Paris\nB) London\nC) Rome\nD) A new town",
        "Both Paris and London",
        "It is not Paris.",
        "Answer: I am not sure",
        "Let us look at Paris first, for it has a river and a tower. " * 5 + "Then there is the question of",
    ],
)
def test_hedges_lists_and_denials_choose_nothing(text: str) -> None:
    assert choice(text, list("ABCD"), OPTIONS) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("So it fails.\nAnswer: A", "A"),
        ("Answer: ['a']", "D"),
        ("It prints `['a', 'c']`.", "C"),
        ("a exists on the class, so nothing else is asked.", None),
        ("Answer: 'b'", "B"),
    ],
)
def test_options_with_code_are_distinguished_from_letters_and_articles(text: str, label: str | None) -> None:
    options = ["It raises RuntimeError", "<a>", "['a', 'c']", "['a']"]
    assert choice(text, list("ABCD"), options) == label


def test_option_that_is_a_digit_is_matched() -> None:
    assert choice("2 + 2.\nAnswer: 4", list("AB"), ["3", "4"]) == "B"


@pytest.mark.parametrize(("text", "label"), [("x", "A"), ("**y**", "B"), ("+", "C"), ("z", None), ("x or y", None)])
def test_answer_that_is_an_option_of_one_character_chooses_it(text: str, label: str | None) -> None:
    assert choice(text, list("ABC"), ["x", "y", "+"]) == label


def test_longer_of_two_overlapping_options_is_chosen() -> None:
    assert choice("New York City", ["A", "B"], ["York", "New York City"]) == "B"


# ---- JSON ------------------------------------------------------------------------------------------------------------


def test_json_values_are_returned_with_the_last_fence_first() -> None:
    text = 'See {"a": 0}.\n```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```\nas in [3].'
    assert json_values(text)[:2] == [{"a": 2}, {"a": 1}]
    assert {"a": 0} in json_values(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "b": [1, 2, {"c": "x"}, {"c": "unfin', {"a": 1, "b": [1, 2, {"c": "x"}]}),
        ('```json\n{"a": "}]", "b": 12', {"a": "}]"}),
        ('{"a": {"b": 1}', {"a": {"b": 1}}),
        ('{"a": "say \\"hi', None),
        ('{"a": 1}', None),
        ("no", None),
    ],
)
def test_truncated_json_is_closed_after_its_last_complete_member(text: str, value: object) -> None:
    assert complete_json(text) == value


def test_completing_deeply_nested_json_takes_little_memory() -> None:
    text = '{"a":1,"b":' * 11_000  # 120 KB
    tracemalloc.start()
    try:
        complete_json(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(text)


# ---- nothing stalls --------------------------------------------------------------------------------------------------

HEAPS = {
    "stars": "*" * 100_000,
    "lines": "\n " * 50_000,
    "answers": "answer " * 15_000,
    "answer and spaces": "answer" + " " * 100_000,
    "digits": "9" * 100_000,
    "groups": "123 " * 30_000,
    "boxes": "\\boxed{" * 15_000,
    "fractions": "\\frac{1}{" * 15_000,
    "braces": '{"a":' * 20_000,
    "tags": "<think>" * 15_000 + "</think>\n" * 15_000,
    "letters": "(A) " * 25_000,
    "it is": "it is " * 20_000,
    "answers on one line": "the answer is 3 or 4 " * 20_000,
    "corrections": "wait, 3, no wait " * 20_000,
    "equations": "1 = " * 50_000,
    "or": "3 or " * 50_000,
    "words": "twenty one " * 30_000,
    "sentences": "It may be 3. " * 20_000,
    "headings": "### Answer\n\n" * 20_000,
    "introductions": "Here is the answer:\n" * 30_000,
    "bold": "**3** " * 30_000,
    "keys": '"answer": ' * 20_000,
    "keys without end": '"answer": "' * 20_000,
    "open brackets": '"answer": [' * 20_000,
    "backslashes": "\\" * 100_000 + " " * 100_000,
    "hashes": "#### \n" * 20_000,
    "gap": "a" + " " * 100_000 + "b",
    "asides": "(3 m) 2 km " * 20_000,
    "undecided": "I can't say which. " * 20_000,
    "below zero": "3 degrees below " * 20_000,
    "characters": "3亿5000万" * 20_000,
    "wavering": "could be A or " * 20_000,
    "instructions": "so just double that, " * 20_000,
    "initials": "the answer is " + "A. B. " * 30_000,
    "underscores": "_" * 100_000,
    "nested objects": '{"a":1,"b":' * 100_000,
}


@pytest.mark.timeout(40)
@sampled("heap", HEAPS, each=6)
def test_repeated_fragments_neither_raise_nor_stall(heap: str) -> None:
    """This takes a second. With quadratic patterns it would take minutes and exceed the time limit."""
    text = HEAPS[heap]
    number(text)
    choice(text, list("ABCD"), OPTIONS)
    final_answer(text)
    json_values(text)
    complete_json(text)
