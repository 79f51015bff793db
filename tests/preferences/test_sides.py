"""Tests of side references in critiques: detection, storage and display."""

import pytest

from preferences.sides import Sides, lists_choices, tokens_to_phrases

PLAIN, SWAPPED = Sides(swapped=False), Sides(swapped=True)

REFERENCES = {
    "A is better.": "⟦first⟧ is better.",
    "B is better because A…": "⟦second⟧ is better because ⟦first⟧…",
    "Response A is shorter.": "Response ⟦first⟧ is shorter.",
    "response B's loop never ends": "response ⟦second⟧'s loop never ends",
    "assistant A and assistant B": "assistant ⟦first⟧ and assistant ⟦second⟧",
    "Responses A and B agree.": "Responses ⟦first⟧ and ⟦second⟧ agree.",
    "Both A and B fail, but B fails later.": "Both ⟦first⟧ and ⟦second⟧ fail, but ⟦second⟧ fails later.",
    "I prefer A.": "I prefer ⟦first⟧.",
    "A's answer is right; B’s is not.": "⟦first⟧'s answer is right; ⟦second⟧’s is not.",
    "A correctly handles it": "⟦first⟧ correctly handles it",
    "A also only returns one": "⟦first⟧ also only returns one",
    "A doesn't compile": "⟦first⟧ doesn't compile",
    "A can't": "⟦first⟧ can't",
    "A failed to return": "⟦first⟧ failed to return",
    "A: right. B: wrong.": "⟦first⟧: right. ⟦second⟧: wrong.",
    "**A** handles it, **B** does not": "**⟦first⟧** handles it, **⟦second⟧** does not",
    "- A misses it\n- B does not": "- ⟦first⟧ misses it\n- ⟦second⟧ does not",
    "A/B": "⟦first⟧/⟦second⟧",
    "A and B say the same": "⟦first⟧ and ⟦second⟧ say the same",
    "A, unlike B, loops": "⟦first⟧, unlike ⟦second⟧, loops",
    "Winner: A": "Winner: ⟦first⟧",
    "The better answer is A.": "The better answer is ⟦first⟧.",
    "[[A]]": "[[⟦first⟧]]",
    "B says the same as A.": "⟦second⟧ says the same as ⟦first⟧.",
    "(A)": "(⟦first⟧)",
    "worse than A in every way": "worse than ⟦first⟧ in every way",
    "In A the loop ends": "In ⟦first⟧ the loop ends",
    "A - concise": "⟦first⟧ - concise",
    "Antwort B ist besser": "Antwort ⟦second⟧ ist besser",
    "the first response is shorter": "response ⟦first⟧ is shorter",
    "The second response's code": "Response ⟦second⟧'s code",
    "First response is right.": "Response ⟦first⟧ is right.",
    "the response on the right": "response ⟦second⟧",
    "response b is wrong": "response ⟦second⟧ is wrong",
    "response a is wrong": "response ⟦first⟧ is wrong",
    "A": "⟦first⟧",
    "A > B": "⟦first⟧ > ⟦second⟧",
    "* A misses it": "* ⟦first⟧ misses it",
}

NO_REFERENCES = [
    "A good answer names the city.",
    "A concise and correct text.",
    "Good. A better one would test for it.",
    "Note: A bounds check is missing.",
    "A class is missing.",
    "A series of steps.",
    "A detailed and correct answer",
    "A failed attempt",
    "A really concise text",
    "A while loop",
    "A returns-only function",
    "Plan B",
    "vitamin B",
    "matrix A times matrix B",
    "set A and set B overlap",
    "points A and B",
    "from A to Z",
    "an A for effort",
    "option B",
    "the correct answer is B",
    "The options are A, B and C.",
    "It returns `A` or `B`",
    'It prints "A", not "B"',
    "It prints 'A'",
    "```python\nA = 1\nB = A\n```",
    "A = B + 1",
    "A * B",
    "A.append(1)",
    "A(1)",
    "A[0]",
    "a B-tree",
    "A* search",
    "A+ and B-",
    "A/B test",
    "A/B testing",
    "THIS IS A TEST",
    "a Class B licence",
    "its first response was better",
    "the first element",
    "the right answer",
    "first, the response is short",
    "the response a user gets",
    "a better b",
    "A_1 and B2",
    "Café AB",
]


@pytest.mark.parametrize(("text", "stored"), REFERENCES.items())
def test_references_are_stored_as_tokens(text: str, stored: str) -> None:
    assert PLAIN.letters_to_tokens(text) == stored
    exchanged = {"first": "second", "second": "first"}
    for name, token in (("first", "\0"), ("second", "\1")):
        stored = stored.replace(f"⟦{name}⟧", token)
    stored = stored.replace("\0", f"⟦{exchanged['first']}⟧").replace("\1", f"⟦{exchanged['second']}⟧")
    assert SWAPPED.letters_to_tokens(text) == stored


@pytest.mark.parametrize("text", NO_REFERENCES)
def test_letters_without_reference_are_unchanged(text: str) -> None:
    assert PLAIN.letters_to_tokens(text) == text


def test_tokens_become_letters_of_reader() -> None:
    stored = SWAPPED.letters_to_tokens("B is better because response A's loop never ends.")
    assert PLAIN.shown(stored) == "A is better because response B's loop never ends."
    assert SWAPPED.shown(stored) == "B is better because response A's loop never ends."


def test_letters_and_sides_translate_both_ways() -> None:
    verdicts = [SWAPPED.verdict(letter) for letter in ("A", "b", "tie", "both_bad")]
    assert verdicts == ["second", "first", "tie", "both_bad"]
    assert [SWAPPED.letter(side) for side in ("first", "second", "tie")] == ["B", "A", "tie"]
    assert SWAPPED.ordered(1, 2) == (2, 1)
    assert PLAIN.ordered(1, 2) == (1, 2)


def test_tokens_become_phrases_with_noun_and_capitalization() -> None:
    text = PLAIN.letters_to_tokens("A is better: B's loop fails. Response A and B differ in A. The answer B.")
    assert tokens_to_phrases(text) == (
        "The first response is better: the second response's loop fails. The first response and the second response "
        "differ in the first response. The second response."
    )
    assert tokens_to_phrases(text, first="this one", second="the other").startswith(
        "This one is better: the other's loop"
    )
    assert (
        tokens_to_phrases(PLAIN.letters_to_tokens("Responses A and B agree"))
        == "The first response and the second response agree"
    )


def test_typed_token_is_not_a_reference() -> None:
    assert SWAPPED.shown(PLAIN.letters_to_tokens("⟦first⟧ and A")) == "[[first]] and B"


def test_lettered_choices_limit_references_to_named_sides() -> None:
    assert lists_choices([{"role": "user", "content": "Which?\nA) one\nB) two\nC) three"}])
    assert lists_choices([{"role": "user", "content": [{"type": "text", "text": "(A) one\n(B) two"}]}])
    assert not lists_choices([{"role": "user", "content": "A story about B."}])
    text = "B is right, and response A says B. Answer A is wrong."
    assert PLAIN.letters_to_tokens(text, choices=True) == "B is right, and response ⟦first⟧ says B. Answer A is wrong."
