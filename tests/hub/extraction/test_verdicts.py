"""Answers that were once read as another number, option or text than a person reads."""

from fractions import Fraction

import pytest

from hub.extraction import Quantity, choice, final_answer, json_value, number, read_number

FOUR = ["A", "B", "C", "D"]
CITIES = ["Paris", "London", "Rome", "Berlin"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("He earned $10 on Monday and $8 on Tuesday for a total of $18.", 18),
        ("She sells 9 eggs at $2 each, for a total of $18 per day.", 18),
        ("He bought it for $10 and sold it for $18, making a profit of $8.", 8),
        ("She sold 48 clips in April and 24 in June, for a total of 72 clips.", 72),
        ("He has $20 left of $100.", 20),
        ("5, for he lost 3.", 5),
        ("5 apples remain after day 3.", 5),
        ("Answer: $5 are left after week 3", 5),
        ("Nothing is left after day 3.", 3),
        ("Der Computer kostet 1.500 €.", 1500),
        ("12.500 Euro", 12500),
        ("1.625 €/l", 1.625),
        ("1.500 kg", 1.5),
        ("She sold 48/2 = 24 clips in May, so 48+24 = 72 clips altogether.", 72),
        ("There are 30 days in April and 31 in May, so 61 days.", 61),
        ("Answer: 5! = 120", 120),
        (r"\boxed{5! = 120}", 120),
        ("120 = 5!", 120),
        ("Answer: 3,628,800 = 10!", 3628800),
        ("There are 120 (5!) ways.", 120),
        ("120, which is 5!", 120),
        ("2 + 3 = 5!", 5),
        ("4 - 2 = 2!", 2),
        ("The answer is 42, under 50.", 42),
        ("The charge is 2+.", 2),
        ("Answer: 3+", 3),
        ("Answer: 2x faster", 2),
        ("La réponse est 1 234,5", 1234.5),
        ("12\u202f345,5 €", 12345.5),
        ("Antwort: 0,125", 0.125),
        ("-0,125 m", -0.125),
        ("La respuesta es 3,0625.", 3.0625),
        ("5 × 10^(-1)", 0.5),
        ("Answer: 2^(3)", 8),
        ("The total is 42.\n\n1. We multiply six by seven.\n2. We check the result.", 42),
        ("So 42 in all.\n\n**Steps:**\n**1.** Multiply.\n**2.** Check.", 42),
        ("2. There are two of them.", 2),
        ("1. Six times seven.\n2. That is 42.", 42),
        ("The total is 42 [1].", 42),
        ("The total is 42.[2][3]\n\n[2] Annual report\n[3] Press release", 42),
        (r"x \equiv 2 \pmod{5}", 2),
        ("x ≡ 2 mod 5", 2),
        (r"The result is $2 \bmod 5$.", 2),
        ("17 mod 5 = 2", 2),
        ("Es sind 41, nicht 42.", 41),
        ("La réponse est 41, pas 42.", 41),
        ("Ce sont 41, et non 42.", 41),
        ("是41，不是42。", 41),
        ("答えは42ではなく41です。", 41),
        ("정답은 42가 아니라 41입니다.", 41),
        ("It is 41 as opposed to 42.", 41),
        ("Hij is pas 42.", 42),
        ("Answer: − 5", -5),
        ("The answer is − 5.", -5),
        ("− 5 °C", -5),
        ("7 − 2 = 5", 5),
        ("La réponse est moins 5.", -5),
        ("Respuesta: menos 5", -5),
        ("Cuesta al menos 5.", 5),
        ("Il y en a au moins 5.", 5),
        ("минус 5", -5),
        ("答案是负5。", -5),
        ("他们胜2负5", 5),
        ("The answer is 4! = 24 ways.", 24),
        ("Answer: 3.5 to 2 decimal places", 3.5),
        ("The answer is 3.5 to 2 significant figures.", 3.5),
        ("x = - 5", -5),
        ("Answer: 20\n\nCorrected answer: 18", 18),
        (r"\boxed{- 5}", -5),
        ("The answer is 12. If he had sold twice as many, the answer would be 24.", 12),
        ("The total cost is $45.50, which includes a 20% tip.", 45.5),
        ("Answer: 90 minutes (1 hour and 30 minutes)", 90),
        ("The answer is 42, rather than 41.", 42),
        ("The answer is 42, no more than 50.", 42),
        ("The answer is 42, no, 43.", 43),
        ("The answer is 42. A common wrong answer is 41.", 42),
        ("So she has 42 left. Many people say 41, which is wrong.", 42),
        ("So she has 42 left. A common mistake is to answer 41.", 42),
        ("There are 42 apples, of which 20 are red.", 42),
        ("I got 42. Confidence: 90%", 42),
        ("She has 42 left, which is less than 50.", 42),
        ("x = 42 > 0", 42),
        ("Answer:\n> 42", 42),
        ("=> 42", 42),
        ("It is <b>42</b>", 42),
        ("The answer is at least 42.", 42),
        (r"The side is \sqrt{400} = 20 m.", 20),
        ("The answer is the largest integer less than 43, which is 42.", 42),
        (r"Answer: $\angle ABC = 42^\circ < 90^\circ$", 42),
        ("Answer: <42>", 42),
        ("A common mistake would be to say 41, but it's actually 42.", 42),
        ("The total is 42. There is not enough information to determine each part.", 42),
        ("The total is 42. Each part cannot be determined.", 42),
        ("It cannot be determined directly, but adding up gives 42.", 42),
        ("After day 3, 5 apples remain.", 5),
        ("Answer: After day 3, 5 apples remain.", 5),
        ("In 2020, 42 people came.", 42),
        ("So, at the end of day 3, 5 remain.", 5),
        ("Out of 100 students, 42 passed.", 42),
        ("42 of the 100 students passed.", 42),
        ("Multiply 6 by 7 to get 42.", 42),
        ("Add 20 and 22 to get 42.", 42),
        ("You need to add 42 to get 100.", 42),
        ("She needs 42 more to reach 100.", 42),
        ("She needs 42 more dollars to buy the $100 bike.", 42),
        ("It will take her 6 years to save $100.", 6),
        ("6 is the GCD of 12 and 18.", 6),
        ("42 to the nearest 10", 42),
        ("He was born on July 4, 1776.", 1776),
        ("exp 42 years", 42),
        ("You might think the answer is 41, but it is 42.", 42),
        ("It may seem that the answer is 41. It is 42.", 42),
        ("The only possible answer is 42.", 42),
        ("It is 42. I am 90% sure.", 42),
        ("It should be 42, with 95% confidence", 42),
        ("42. To verify, 42/6 = 7.", 42),
        ("So it is 42.\n\nSource: Smith 2019", 42),
        ("42\nTokens used: 250", 42),
        ("I can't help with your homework, but 6 * 7 = 42.", 42),
        ("I can't answer that exactly. It is about 42.", 42),
        ("I can't do this in my head.\n\n42", 42),
        ("I won't answer, the question is flawed. Anyway:\n**42**", 42),
        ("I can't solve this analytically. Numerically: 42", 42),
        ("I can't answer that without a calculator. Result → 42", 42),
        ("I cannot help noticing that 6 times 7 is 42", 42),
        ("Sorry, I can't provide the drawing. The total is 42.", 42),
        ("5!=120", 120),
        ("x ≠ 41, so x = 42", 42),
        ("It exceeds the limit by 42.", 42),
        ("The share is 42%.", 42),
    ],
)
def test_number_is_the_one_that_a_person_reads(text: str, value: float) -> None:
    found = read_number(text).quantity
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize(
    ("text", "smaller", "larger"),
    [
        ("The answer is 1 h 30 min.", 90, 1.5),
        ("1h30m", 90, 1.5),
        ("3 h 30", 210, 3.5),
        ("La réponse est 3h30.", 210, 3.5),
        ("It takes 2 hours and 15 minutes.", 135, 2.25),
        ("5'11\"", 71, 71 / 12),
        ("Answer: 6 ft 3 in", 75, 6.25),
        ("It weighs 3 lb 4 oz.", 52, 3.25),
        ("Answer: 3 pounds 50 pence", 350, 3.5),
        ("He waited 1 h 30 min 15 s.", 5415, 90.25),
        ("2 hours, 15 minutes", 135, 2.25),
        ("Answer: 2 hours, and 15 minutes", 135, 2.25),
        ("5 feet, 11 inches", 71, 71 / 12),
        ("1 km 200 m", 1200, 1.2),
        ("Answer: 1 km 200 m", 1200, 1.2),
        ("The answer is 2 m 50 cm.", 250, 2.5),
        ("5 kg 300 g", 5300, 5.3),
        ("Answer: 1 litre 250 ml", 1250, 1.25),
    ],
)
def test_measure_in_two_units_is_read_in_either(text: str, smaller: float, larger: float) -> None:
    found = read_number(text).quantity
    assert found is not None
    assert found.near(Quantity(Fraction(smaller)), Fraction(0))
    assert found.near(Quantity(Fraction(larger)), Fraction(1, 10**9))


@pytest.mark.parametrize(
    ("text", "degrees"),
    [
        ("30°15'", 30.25),
        ("Answer: 30° 15′", 30.25),
        ("-30°15'", -30.25),
        ("30°15'36\"", 30.26),
        (r"\boxed{30^\circ 15'}", 30.25),
        (r"\boxed{30^{\circ}15^{\prime}}", 30.25),
        ("The angle is 30 degrees, 15 minutes.", 30.25),
        ("30°0'", 30),
    ],
)
def test_angle_in_degrees_and_minutes_is_read_in_degrees(text: str, degrees: float) -> None:
    found = read_number(text).quantity
    assert found is not None
    assert found.value == Fraction(str(degrees))


def test_degrees_of_temperature_and_a_later_time_are_no_angle() -> None:
    assert read_number("It is 30 degrees 15 minutes later.").quantity != Quantity(Fraction("30.25"))


@pytest.mark.parametrize("text", ["He has 3 h and 90 min left.", "2 m and 30 cm", "1 km, 200 m", "2 hours, 75 minutes"])
def test_two_measures_are_not_joined(text: str) -> None:
    assert read_number(text).quantity is None


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{5i}",
        r"\boxed{2a}",
        r"\boxed{\frac{x}{2}}",
        r"\boxed{\frac{5}{x}}",
        r"\boxed{\frac{1}{2}x}",
        r"\boxed{5xy}",
        "5a",
        "The answer is 5a.",
        "So it is 2ab",
        r"\boxed{x^{2}}",
        r"The answer is $e^{2}$.",
        r"\boxed{x_{2}}",
        r"\boxed{f(2)}",
        "The answer is ln 2.",
        r"$\ln(2)$",
        r"\log_{10} 2",
        "The answer is sin(2).",
    ],
)
def test_expressions_with_variables_are_no_numbers(text: str) -> None:
    assert read_number(text).quantity is None


@pytest.mark.parametrize("text", ["5A", "5 a day", "It is 5x faster.", "5m", "a 5v battery"])
def test_units_and_words_after_a_number_make_no_expression(text: str) -> None:
    found = read_number(text).quantity
    assert found is not None
    assert found.value == 5


@pytest.mark.parametrize("text", [r"\boxed{42!}", r"$\boxed{42!}$", r"\boxed{x = 42!}", "The answer is $42!$."])
def test_exclamation_mark_in_a_formula_makes_a_factorial_which_is_not_evaluated(text: str) -> None:
    assert read_number(text).quantity is None


@pytest.mark.parametrize("text", ["42!", "The answer is 42!", r"\boxed{42}!", r"\boxed{42 \text{ apples!}}"])
def test_exclamation_mark_in_prose_ends_a_sentence(text: str) -> None:
    found = read_number(text).quantity
    assert found is not None
    assert found.value == 42


@pytest.mark.parametrize("text", ["0x2A", "Answer: 0x10", r"\boxed{0x2A}", "0b101010", "0o52"])
def test_numbers_in_other_bases_are_not_read(text: str) -> None:
    assert read_number(text).quantity is None


@pytest.mark.parametrize("text", ["0x2A = 42", "The answer is 0x2A (42 in decimal).", "42 (0x2A)"])
def test_decimal_number_is_read_beside_one_in_another_base(text: str) -> None:
    found = read_number(text).quantity
    assert found is not None
    assert found.value == 42


@pytest.mark.parametrize(
    "text", ["After 3, 5", "In 3, 4 or 5 days", "In 2 weeks, 3 days", "6 is the GCD of 12 and 18, or 7", "exp(42)"]
)
def test_numbers_after_a_preposition_or_definition_may_still_be_several(text: str) -> None:
    assert read_number(text).quantity is None


@pytest.mark.parametrize(
    "text",
    [
        *("√42", r"\sqrt{42}", "42π", r"The area is 42\pi.", r"$\sqrt[3]{42}$", "4√42"),
        *("The angle is π/42.", r"$\pi/42$", "It is a/42.", "The answer is 42 choose 3.", "It is C(42, 2).", "C(42,2)"),
    ],
)
def test_unmarked_formulas_are_not_evaluated_and_are_no_numbers(text: str) -> None:
    assert read_number(text).quantity is None


@pytest.mark.parametrize(
    "text",
    [
        "The answer is less than 42.",
        "Die Antwort ist weniger als 42.",
        "La réponse est moins de 42.",
        "más de 42",
        "больше 42",
        "少于42",
        "It must be more than $42.",
        "The answer is >42",
        "Answer: >42",
        "Answer: x < 42",
        "x > 42",
        r"\boxed{x < 42}",
        r"\boxed{x \lt 42}",
        "≤ 42",
        ">= 42",
        "x ≤ 42",
        "0 ≤ x ≤ 42",
        "42 ≤ x",
        "The answer is x ≥ 42.",
        r"\boxed{\le 42}",
        r"\boxed{x \geq 42 \text{ m}}",
        "at most 42",
        "At least 42 apples.",
        "up to $42",
        "42 apples or more",
        "Answer: at most 42",
        "42 at most",
        "under 42",
        "just under 42",
        "Answer: slightly over 42 km",
        "Answer: 2x more + 1",
        "Answer: 2x",
        "Answer: below 42",
        "**Answer: over 42 apples**",
        "The answer is under $42.",
        "42+",
        "Answer: 42+ apples",
        r"\boxed{42+}",
        "**42+**",
        "**42 or more**",
        "5+ apples",
        "more than 42",
    ],
)
def test_bounds_are_not_answers(text: str) -> None:
    assert read_number(text).quantity is None


@pytest.mark.parametrize(
    "text",
    [
        "It takes at least 42 moves.",
        "So n ≥ 41.5, and the answer is 42.",
        "Hence x ≤ 42, so the largest is 42.",
        "At most 42 people fit, so the answer is 42.",
        "It takes over 42 minutes.",
        "42+ people came to the party.",
        "The answer is 42, and 42 ≤ 50.",
        "=> 42",
    ],
)
def test_sentences_with_bounds_give_their_number(text: str) -> None:
    found = read_number(text).quantity
    assert found is not None
    assert found.value == 42


@pytest.mark.parametrize(
    "text",
    [
        "The answer is unknown; there were 42 people.",
        "Answer: cannot be determined from the 42 apples",
        "It cannot be determined from the 42 apples given.",
        "A common mistake is to answer 42.",
        "42 apples were given. There is not enough information.",
        "I'm sorry, but I can't help with 42.",
        "I'm sorry, I can't assist with that request. In an emergency call 42.",
        "I cannot provide that. Please contact 42.",
        "As an AI trained in 42, I can't do that.",
        "I am unable to answer; see chapter 42.",
        "I can’t help with that. Try 42.",
    ],
)
def test_numbers_in_refusals_are_not_answers(text: str) -> None:
    assert read_number(text).quantity is None


@pytest.mark.parametrize(
    "joined",
    [
        "または",
        "か",
        "、",
        "〜",
        "から",
        "或者",
        "至",
        "또는",
        " eller ",
        " lub ",
        " nebo ",
        " veya ",
        " atau ",
        " أو ",
        " ή ",
    ],
)
def test_alternatives_and_ranges_in_further_languages_give_no_single_number(joined: str) -> None:
    assert read_number(f"41{joined}42").several
    assert read_number(f"答案: 41{joined}42").several


def test_clauses_in_japanese_are_no_alternatives() -> None:
    assert read_number("りんごが5個なので、合計500円です。").quantity == Quantity(Fraction(500))


@pytest.mark.parametrize(
    "text",
    [
        "It is not 42.",
        "The answer isn't 42.",
        "It may be 5 or 6.",
        r"\boxed{x=5 \text{ or } x=6}",
        r"\boxed{x=5 \quad\text{or}\quad x=6}",
        "Die Antwort ist nicht 42.",
        "La réponse n'est pas 42.",
        "La respuesta no es 42.",
        "As a GPT-4 model, I cannot answer this question.",
        "There are 42 of them. Sorry, I'm unable to solve this problem.",
        "42 mod 5",
        "答案不是42。",
        "答えは42ではありません。",
        "It's anything but 42.",
        "x ≠ 42",
        r"$x \neq 42$",
        "It exceeds 42.",
    ],
)
def test_denied_and_alternative_numbers_are_not_answers(text: str) -> None:
    assert read_number(text).quantity is None


@pytest.mark.parametrize(
    ("text", "choices", "label"),
    [
        ("B, since A is only half right.", CITIES, "B"),
        ("A is only true for Europe. Therefore B.", CITIES, "B"),
        ("A is the only city there.", CITIES, "A"),
        ("A must be the only right one, since B is wrong.", CITIES, "A"),
        ("B it is.", CITIES, "B"),
        ("∴ B", CITIES, "B"),
        ("Yes.\n\nThere is no other explanation.", ["Yes", "No"], "A"),
        ("No.\n\nYes would mean that it floats.", ["Yes", "No"], "B"),
        ("No, there is no evidence.", ["Yes", "No"], "B"),
        ("I'm sorry, but I have no way to answer that.", ["Yes", "No"], None),
        ("True\n\nIt would be false to say otherwise.", ["True", "False"], "A"),
        ("True, although many think it is false.", ["True", "False"], "A"),
        ("False – many believe it is true.", ["True", "False"], "B"),
        ("London, while the capital of France is Paris.", CITIES, "B"),
        ("London, as well as Paris.", CITIES, None),
        ("True or false? False.", ["True", "False"], "B"),
        ("Can it fly? No. Can it swim? Yes.", ["Yes", "No"], None),
        ("There is no entailment and no contradiction. Neutral.", ["entailment", "neutral", "contradiction"], "B"),
        ("It is overall negative, although the first part is positive.", ["positive", "negative"], "B"),
        ("While there are negative points, I'd classify it as positive.", ["positive", "negative"], "A"),
        ("The capital of Italy is Rome, whereas that of France is Paris.", CITIES, None),
        ("This is false - it would be true for even numbers.", ["True", "False"], "B"),
        ("**London**\n\nParis is the capital of France.", CITIES, "B"),
        ("Paris, London and Rome are capitals.", CITIES, None),
        ("Paris, or possibly Rome.", CITIES, None),
    ],
)
def test_option_at_the_beginning_is_chosen_before_options_that_later_sentences_name(
    text: str, choices: list[str], label: str | None
) -> None:
    assert choice(text, FOUR[: len(choices)], choices) == label


@pytest.mark.parametrize(
    ("text", "choices", "label"),
    [
        ("Answer: 2.5 m", ["5 m", "10 m"], None),
        ("The answer is 10.5.", ["10", "20"], None),
        ("Answer: $1,050", ["$1", "$50"], None),
        ("Answer: -5 N", ["5 N", "10 N"], None),
        ("Answer: −5 N", ["-5 N", "5 N", "50 N"], "A"),
    ],
)
def test_option_with_a_number_is_not_found_within_another_number(
    text: str, choices: list[str], label: str | None
) -> None:
    assert choice(text, FOUR[: len(choices)], choices) == label


@pytest.mark.parametrize(
    ("text", "choices", "label"),
    [
        ("The answer is C) Both A and B.", ["x", "y", "Both A and B", "z"], "C"),
        ("The answer is D: A, B and C are all correct.", ["more", "less", "equal", "All of the above"], "D"),
        ("The answer is B: London, unlike A or C.", CITIES, "B"),
        (r"The answer is \(B\).", [], "B"),
        ("I'm going with B.", [], "B"),
        ("My guess is B.", [], "B"),
        ("B is the most accurate.", [], "B"),
        ("The correct statement is B.", [], "B"),
        ("**Option:** B", [], "B"),
        ("**Selected Option:** B", [], "B"),
        ("【答案】B", [], "B"),
        ("Answer: A\n\nCorrected answer: B", [], "B"),
        ("Answer: A. Wait, actually B.", [], "B"),
        ("The answer is not B.", [], None),
        ("I don't think it's B.", [], None),
        ("(A) is wrong.", [], None),
        ("The answer is B; A, C and D are incorrect", [], "B"),
        ("The answer is B; A is too small, and C and D are too large.", [], "B"),
        ("The answer is B; C is also possible.", [], None),
        ("If it were larger, the answer would be A. So the answer is C.", [], "C"),
        ("The answer is C. If it were larger, the answer would be A.", [], "C"),
        ("If it were larger, the answer would be A.", [], None),
        ("The answer would be A if it were larger.", [], None),
        ("Based on this, the answer would be A.", [], "A"),
        ("Only B works", [], "B"),
        ("Only option B is correct.", [], "B"),
        ("C is correct. D is also correct.", [], None),
        ("A is correct. C is correct as well.", [], None),
        ("B is correct, and so is D.", [], None),
        ("C is correct, and option D is equally valid.", [], None),
        ("A is also correct, but B is best.", [], "B"),
        ("A is correct. It may seem that D is also correct, but it is not.", [], "A"),
        ("A is correct. D is also wrong.", [], "A"),
        ("B is correct. B is also right in the second sense.", [], "B"),
        ("Only B is incorrect.", [], None),
        ("Only B fails.", [], None),
        ("The answer would be B because if the mass were larger, the force would be, too.", [], "B"),
        ("Only A and B work.", [], None),
        ("I'm between A and B, but I'd lean towards B.", [], "B"),
        ("I'm between A and C, but A is less likely, so C", [], "C"),
        ("It could be A or C, so A or C.", [], None),
        ("It could be A or B, so A is possible.", [], None),
        ("The answer is C) Rome, rather than B) London", CITIES, "C"),
        ("The answer is B, no question about it.", [], "B"),
        ("The answer is B, no, C.", [], "C"),
        ("The answer is A. A common wrong answer is B.", [], "A"),
        ("I think the answer is B but I'm not sure.", [], "B"),
        ("A? No. B? Yes.", [], "B"),
        ("B? No.", [], None),
        ("Do not choose B.", [], None),
        ("I wouldn't pick option B.", [], None),
        ("I would not choose A; I choose B.", [], "B"),
        ("B because it is the capital of the UK.", CITIES, "B"),
        ("Option B because there are 3 reasons.", [], "B"),
        ("B is my final answer.", [], "B"),
        ("B would be my choice.", [], "B"),
        ("Initially A looks right. However, on reflection, B.", [], "B"),
        ("✅ B", [], "B"),
        ("A ✅\nB ✅", [], None),
    ],
)
def test_label_is_the_one_that_the_sentence_chooses(text: str, choices: list[str], label: str | None) -> None:
    assert choice(text, FOUR, choices) == label


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("None of the options A, B, C, D is right.", []),
        ("None of A, B and C is correct.", []),
        ("Neither A nor C is right.", []),
        ("A is the only wrong one.", []),
        ("A is the only option that is false.", []),
        ("All of these except Paris.", CITIES),
        ("Anything but Paris", CITIES),
        ("La respuesta no es B.", []),
        ("Die Antwort ist nicht B.", []),
        ("La réponse n'est pas la B.", []),
    ],
)
def test_option_that_is_left_out_or_wrong_is_not_chosen(text: str, choices: list[str]) -> None:
    assert choice(text, FOUR, choices) is None


def test_only_option_that_is_not_wrong_is_chosen() -> None:
    assert choice("B is the only one that is not wrong.", FOUR) == "B"


@pytest.mark.parametrize(
    "text",
    [
        "42 is wrong.",
        "42 is not correct",
        "**42** is not the answer.",
        "The answer 42 is incorrect.",
        "42 apples is wrong.",
        "42 ist falsch.",
        "Is it 42? No.",
        "I don't think it's 42.",
        "It cannot be 42.",
        '{"answer": null, "note": 42}',
        "42 is wrong because it ignores the first day.",
        "**42** is wrong, as a day is missing.",
        "42 is too low.",
        "42 was a mistake.",
        "Of these, 42 is not.",
    ],
)
def test_number_that_is_only_denied_is_no_answer(text: str) -> None:
    assert number(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "It is 42.\n41 is wrong.",
        "Is it 41? No. Is it 42? Yes.",
        "Is it 41? No, it is 42.",
        "Statement 42 is false.",
        "x cannot be 42.",
        '{"answer": null}\n\nThe answer is 42.',
        "__42__",
        "_42 km_",
        "It is __42__, as 41 + 1 shows.",
        "42 (see eq. 3)",
        "So x = 42 (Eq. 3).",
        "x = 42 by Eq. (3).",
        "It is 42 by Theorem 3.",
        "The mistake is in equation 42.",
        "42 is correct; 41 is wrong.",
        "The result is 42, while 41 is wrong.",
        "42 is right, 41 is not.",
        "42 is right – 41 is too low.",
        "41 is wrong and 42 is right.",
        "41 is too small, but 42 works.",
        "42 is not wrong.",
        "42 is not prime.",
    ],
)
def test_number_beside_denials_marks_and_references_is_read(text: str) -> None:
    assert number(text) == 42, text


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("A ❌\nB ❌\nC ✅\nD ❌", "C"),
        ("A. Paris ❌\nB. London ❌\nC. Rome ✅\nD. Oslo ❌", "C"),
        ("A) Paris ❌ too far\nC) Rome ✅ right", "C"),
        ("❌ A\n❌ B\n✅ C\n❌ D", "C"),
        ("A ❌, B ❌, C ✅, D ❌", "C"),
        ("A ✅ B ✅ C ❌ D ❌", None),
        ("A good idea ✅", None),
    ],
)
def test_only_option_with_a_tick_is_chosen(text: str, label: str | None) -> None:
    assert choice(text, list("ABCD"), ["Paris", "London", "Rome", "Oslo"]) == label


@pytest.mark.parametrize(
    "text", ["Answer: B (Paris)", "B (Paris)", "B. Paris", "**B) Paris**", "The answer is B: Paris."]
)
def test_label_with_the_text_of_another_option_chooses_nothing(text: str) -> None:
    assert choice(text, list("AB"), ["Paris", "London"]) is None
    assert choice(text, list("AB"), ["London", "Paris"]) == "B"
    assert choice(text, list("AB")) == "B"


@pytest.mark.parametrize("text", ["B) None of the above", "**B) Not enough information**", "B) Neither of them"])
def test_label_before_the_text_of_a_negative_option_is_chosen(text: str) -> None:
    assert choice(text, list("AB")) == "B"


def test_decimal_number_chooses_no_label_that_is_a_number() -> None:
    assert choice("2.5", ["1", "2", "3"]) is None
    assert choice("Answer: 2.5", ["1", "2", "3"]) is None
    assert choice("2. It is right.", ["1", "2", "3"]) == "2"
    assert choice("1,2", ["1", "2", "3"]) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("No, it isn't.", "no"),
        ("No. Yes would be wrong.", "no"),
        ("**Yes** — there is no other way.", "yes"),
        ("No – although some say yes.", "no"),
        ("Yes - even if others say no.", "yes"),
        ("Yes, but no.", None),
        ("No — yes, actually.", None),
        ("Yes or no", None),
        ("Yes or no? Yes.", "yes"),
    ],
)
def test_label_that_is_a_word_is_read_as_an_option(text: str, label: str | None) -> None:
    assert choice(text, ["yes", "no"]) == label


WRITERS = ["Hemingway", "F. Scott Fitzgerald", "Steinbeck", "Faulkner", "Joyce", "Woolf"]
BACTERIA = ["B. subtilis", "E. coli", "C. difficile", "S. aureus", "P. putida"]


@pytest.mark.parametrize(
    ("text", "choices", "label"),
    [
        ("F. Scott Fitzgerald wrote it", [], None),
        ("C. S. Lewis wrote the book.", [], None),
        ("F. Scott Fitzgerald wrote it.", WRITERS, "B"),
        ("**F. Scott Fitzgerald**", WRITERS, "B"),
        ("The answer is F. Scott Fitzgerald.", WRITERS, "B"),
        ("E. coli causes it.", BACTERIA, "B"),
        ("B. F. Scott Fitzgerald", WRITERS, "B"),
        ("F. Joyce wrote it.", WRITERS, "F"),
        ("B. Marie Curie", [], "B"),
        ("B. New York is the largest city.", [], "B"),
        ("B. London lies on the Thames.", CITIES, "B"),
        ("B. Marie Curie discovered it.", ["Niels Bohr", "Marie Curie", "Lise Meitner", "Emmy Noether"], "B"),
    ],
)
def test_initial_of_a_name_is_no_label(text: str, choices: list[str], label: str | None) -> None:
    assert choice(text, list("ABCDEF")[: len(choices) or 6], choices) == label


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is Dr. Seuss.", "Dr. Seuss"),
        ("答案是：巴黎。", "巴黎"),
        ("The answer is St. Petersburg. It is in Russia.", "St. Petersburg"),
        ("The answer is No. The sky is blue.", "No"),
        ("The answer is George W. Bush.", "George W. Bush"),
        ("The answer is **George W. Bush**. He won in 2000.", "George W. Bush"),
        ("The answer is J. R. R. Tolkien. He wrote it.", "J. R. R. Tolkien"),
        ("The answer is the U.S. Supreme Court. It decides such cases.", "the U.S. Supreme Court"),
        ("The answer is Washington, D.C. It became the capital in 1800.", "Washington, D.C."),
        ("The answer is Vitamin C. Oranges contain it.", "Vitamin C"),
        ("The answer is Option B. Paris.", "Option B"),
        ("The answer is Martin Luther King Jr.", "Martin Luther King Jr."),
        ("The answer is Paris. I hope this answer is helpful!", "Paris"),
        ("The answer is $x+1$.", "x+1"),
        (r"The answer is \(x+1\).", "x+1"),
        ("Answer: $5", "$5"),
        ("The answer is $5 and $6.", "$5 and $6"),
    ],
)
def test_final_answer_is_whole_and_without_delimiters_of_maths(text: str, answer: str) -> None:
    assert final_answer(text) == answer


def test_references_and_empty_values_come_after_other_json_in_prose() -> None:
    assert json_value('{"name": "oak"} (see [1])') == {"name": "oak"}
    assert json_value("The list is [1, 2], not {}.") == [1, 2]
    assert json_value("It is [1].") == [1]


@pytest.mark.parametrize("text", ["$- 2$", "$$\n- 2\n$$", r"\(- 2\)", r"The value is \[ − 2 \].", "Answer: $- 2$"])
def test_sign_at_the_beginning_of_a_formula_may_stand_apart(text: str) -> None:
    assert number(text) == -2


@pytest.mark.parametrize(
    "text",
    ["Answer: - 2", "The answer is - 2.", "**Answer:** – 2", "Antwort: **- 2**", "#### - 2", '{"answer": "- $2"}'],
)
def test_sign_of_a_stated_answer_may_stand_apart(text: str) -> None:
    assert number(text) == -2


@pytest.mark.parametrize("text", ["$5 - 3 = 2$", "- 2", "From $x$ - 2 of them"])
def test_dash_elsewhere_is_no_sign(text: str) -> None:
    assert number(text) in (2, None)


@pytest.mark.parametrize(
    "text",
    [
        "A – wrong\nB – wrong\nC – correct\nD – wrong",
        "A - wrong, B - wrong, C - correct, D - wrong",
        "A. Incorrect.\nB. Incorrect.\nC. Correct.\nD. Incorrect.",
        "- **A) Paris** – wrong, it's in France\n- **B) London** – wrong\n- **C) Berlin** – correct",
        "A. Paris is incorrect, it is in France.\nB. London is incorrect.\nC. Berlin is correct.",
        "**Option A:** Wrong\n**Option B:** Wrong\n**Option C:** Right",
        "| Option | Verdict |\n|---|---|\n| A | wrong |\n| B | wrong |\n| C | correct |",
        "| A | Paris | wrong |\n| C | Berlin | right |",
        "Paris – wrong\nLondon – wrong\nBerlin – correct\nMadrid – wrong",
        "Paris is incorrect.\nLondon is incorrect.\nMadrid is incorrect.",
        "- A – falsch\n- C – richtig",
    ],
)
def test_option_that_comments_call_right_is_chosen(text: str) -> None:
    assert choice(text, FOUR, ["Paris", "London", "Berlin", "Madrid"]) == "C"


@pytest.mark.parametrize(
    "text",
    [
        "Paris – wrong.",
        "A – correct\nB – wrong\nC – correct",
        "A – wrong\nB – correct statement about a river",
        "A – wrong\nB – correct\nA – correct",
    ],
)
def test_comments_that_call_no_single_option_right_choose_none(text: str) -> None:
    assert choice(text, FOUR, ["Paris", "London", "Berlin", "Madrid"]) is None


@pytest.mark.parametrize("text", ["B. False", "B: False\n\nThe sky is blue.", "False – the sky is blue."])
def test_options_that_are_words_of_comments_can_be_chosen(text: str) -> None:
    assert choice(text, ["A", "B"], ["True", "False"]) == "B"


def test_option_that_seems_most_likely_is_chosen() -> None:
    assert choice("D seems most likely.", FOUR) == "D"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Answer: B. Alternatively A is fine.", None),
        ("The answer is B. Alternatively, A could be right.", None),
        ("Answer: B. Perhaps A is wrong.", "B"),
        ("A is correct, but B is better.", "B"),
        ("B best describes it.", "B"),
        ("Among the options, B is the closest.", "B"),
        ("It isn't listed, but the closest is B.", "B"),
        ("The incorrect statement is B.", "B"),
        ("My answer: B (I'm 80% sure; A is the second most likely)", "B"),
        ("option b", "B"),
        ("A. Paris or B. London", None),
        ("A) Paris and B) London", None),
        ("A) Paris, C) Rome", None),
        ("- A. Paris\n- C. Rome", None),
        ("A: Paris\nC: Rome", None),
        ("A. Paris B. London C. Rome D. Berlin", None),
        ("**A. Paris** or **B. London**", None),
        ("I choose A (Paris) or B (London).", None),
        ("Answer: A. Paris or B. London", None),
        ("The answer is A. Paris or B. London", None),
        ("A) Paris\nB) London\n\nB", "B"),
        ("A. Paris, not B. London", "A"),
        ("Not A. Paris but B. London", "B"),
        ("A) Paris is right and B) London is wrong.", "A"),
        ("The answer is A. Another valid answer is C.", None),
        ("The answer is A. C is also correct.", None),
        ("The answer is A, but C is equally correct.", None),
        ("Answer: A\nC is also correct.", None),
        ("The answer is A. C is also wrong.", "A"),
        ("You might think the answer is A, but it is C.", "C"),
        ("The answer is D. A is right, and B is also right.", None),
        ("Many people would say the answer is A. It is C.", "C"),
        ("The only possible answer is A.", "A"),
    ],
)
def test_alternatives_and_best_options_decide_the_label(text: str, label: str | None) -> None:
    assert choice(text, FOUR, CITIES) == label


@pytest.mark.parametrize("option", ["All of the above", "all of these", "Both A and B", "A and B", "All", "A, B & C"])
@pytest.mark.parametrize(
    "text",
    [
        "The answer is D. A is true, B is also true, and C is true as well.",
        "The correct answer is D.\n\nA is correct. B is also correct.",
        "Answer: D\n\nA is right, and B is also right.",
    ],
)
def test_options_that_an_option_combines_may_be_called_right_too(text: str, option: str) -> None:
    assert choice(text, FOUR, [*CITIES[:3], option]) == "D"
    assert choice(text, FOUR, [*CITIES[:3], "All cats"]) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("A: correct, but not complete\nB: wrong", None),
        ("A: true, but irrelevant\nB: wrong\nC: wrong\nD: correct", "D"),
        ("A: True\nB: False\nC: True\nD: True\n\nThe false statement is B.", "B"),
        ("| Option | Correct? |\n|---|---|\n| A | ❌ |\n| B | ✅ |\n| C | ❌ |\n| D | ❌ |", "B"),
        (
            "| Option | City | Correct? |\n|---|---|---|\n| A | Paris | No |\n| B | London | Yes |\n| D | Oslo | No |",
            "B",
        ),
        ("| Option | In France? |\n|---|---|\n| A | Yes |\n| B | No |\n| C | No |\n| D | No |", None),
        ("- [ ] A\n- [x] B\n- [ ] C\n- [ ] D", "B"),
        ("- [x] A\n- [x] B", None),
        ("A) Paris\n**B) London**\nC) Rome\nD) Berlin", "B"),
        ("A) Paris\nB) London\nC) Rome\nD) Berlin", None),
        ("A) Paris\nB) London (correct)\nC) Rome\nD) Berlin", "B"),
        ("A) Paris\nB) London <-- correct\nC) Rome\nD) Berlin", "B"),
    ],
)
def test_label_is_the_one_that_a_list_or_table_marks(text: str, label: str | None) -> None:
    assert choice(text, FOUR, CITIES) == label


def test_text_of_equal_options_chooses_the_first_of_them() -> None:
    assert choice("5", FOUR, ["5", "5", "6", "7"]) == "A"
    assert choice("The answer is 5.", FOUR, ["4", "5", "5", "7"]) == "B"


# ---- answers that are denied, and second answers ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{42} is wrong; the right answer is 41",
        r"\boxed{42} is not right. The answer is 41.",
        "The answer is 42? No, it's 41",
        "The answer is 42. No, it's 41.",
        "The answer is 42? No.\n\nIt is 41.",
        '{"response": 41, "confidence": 0.9}',
        '{"total": 41, "confidence": 0.95}',
        "There are 41 in total: 5 red and 36 blue",
        "There are 41 marbles: 5 red, 30 green and 6 blue.",
        "The answer is 41: 5 red and 36 blue.",
        "41 in total, 5 red and 36 blue.",
        "I don't know why, but the answer is 41.",
        "I don't know. Perhaps 41.",
        "There were 30: 10 boys and 15 girls, so 41",
        "The answer is 50 - 9 = 41.",
    ],
)
def test_number_that_is_neither_denied_nor_a_part_is_read(text: str) -> None:
    assert number(text) == 41


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{42} is not right",
        "The answer is 42? No.",
        "It's 42? No.",
        "I don't know the answer. Perhaps look at page 42",
        "I do not know. See page 42.",
        "42, give or take 3",
        "about 3, give or take 42",
    ],
)
def test_number_that_is_denied_or_uncertain_is_no_answer(text: str) -> None:
    assert number(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "It's Paris. Rome is also correct",
        "Paris. Rome is correct too.",
        "I think it's Paris, although Rome is also correct.",
        "1. A\n2. C",
        "1. Paris\n2. Rome",
        "- Paris\n- Rome",
        "Answer: A C",
        "The answer is A C",
        "Answer: (A) (C)",
        "Answer: Paris Rome",
        "Answer: A\n\nAlso acceptable: C",
        "Answer: A\n\nAlso acceptable: Rome",
        "**Answer: A**\n\n*Also acceptable: C*",
        "Answer: A\nC is also acceptable.",
        r"\boxed{C} is not right",
        "The answer is C? No.",
    ],
)
def test_several_or_denied_options_choose_nothing(text: str) -> None:
    assert choice(text, FOUR, CITIES) is None


@pytest.mark.parametrize(
    "text",
    [
        "Rome, London and Berlin are wrong",
        "Rome, London and Berlin are wrong, so it's Paris.",
        "Neither Rome, London nor Berlin is right.",
        "It can't be Rome, London or Berlin.",
        "It's Paris. Rome is also a capital.",
        "Paris is the answer. Rome is the capital of Italy.",
        "Paris is correct. Rome is a capital too.",
        "Rome. No wait, Paris.",
        "It must be Rome. No wait, it's Paris.",
        r"\boxed{C} is wrong; the right answer is A",
        "The answer is C? No, it's A",
        "The answer is Rome? No, it's Paris.",
        "Answer: A\n\nAlso note: C is wrong.",
        "The answer is A. C is also possible, but less likely.",
        "1. A\n2. A",
    ],
)
def test_option_that_is_affirmed_or_left_is_chosen(text: str) -> None:
    assert choice(text, FOUR, CITIES) == "A"


def test_option_called_wrong_may_answer_a_question_for_the_wrong_one() -> None:
    assert choice(r"Statement \boxed{B} is false.", FOUR) == "B"


def test_options_that_are_words_of_sentences_are_not_read_as_labels() -> None:
    assert choice("It's true that he lied, but the claim is false.", ["A", "B"], ["True", "False"]) != "A"
    both = ["Statement I", "Statement II", "Both", "Neither"]
    assert choice("Statement I is correct. Statement II is also correct. Therefore both.", FOUR, both) == "C"
