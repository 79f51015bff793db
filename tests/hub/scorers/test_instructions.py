"""The rule `instructions`: every kind accepts and rejects the right texts, and describes the problem."""

from typing import Any

import pytest

from hub.harnesses.base import Services
from hub.protocols.calls import CallKey
from hub.protocols.cases import CaseData
from hub.scorers.base import Submission, Verdict
from hub.scorers.constraints import ifeval
from hub.scorers.constraints.base import sentences
from hub.scorers.constraints.formats import JsonFormat
from hub.scorers.constraints.registry import CONSTRAINTS
from hub.scorers.instructions import InstructionsOptions, variants
from hub.scorers.registry import SCORERS

ENGLISH = "the river runs slowly through the old town and under three bridges before it meets the sea"
GERMAN = "Der Fluss fließt langsam durch die alte Stadt und unter drei Brücken hindurch ins Meer."
TABLE = "Here:\n\n| Name | Age |\n|:-----|----:|\n| Ann | 3 |\n| Bea | 4 |\n"

# kind, keyword arguments, texts that follow, texts that do not
KINDS: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    ("keywords:existence", {"keywords": ["sea", "Town"]}, [ENGLISH, "TOWN\nSEA"], ["sea", ""]),
    ("keywords:frequency", {"keyword": "the", "frequency": 3}, [ENGLISH], ["the the"]),
    ("keywords:frequency", {"keyword": "the", "frequency": 3, "relation": "less than"}, ["the THE"], [ENGLISH]),
    ("keywords:forbidden_words", {"forbidden_words": ["sea", "bad"]}, ["season of badgers"], ["The Sea!", "(bad)"]),
    ("keywords:forbidden_words", {"forbidden_words": ["a+b"]}, ["aab"], ["so a+b holds"]),
    ("keywords:forbidden_words", {"forbidden_words": ["C++", "don't"]}, ["C and do"], ["C++ is", "I don’t"]),
    ("keywords:forbidden_words", {"forbidden_words": ["猫", "new york"]}, ["犬"], ["我喜欢猫和狗", "New\nYork"]),
    (
        "keywords:forbidden_words",
        {"forbidden_words": ["café", "very"]},
        ["every", "very_big"],
        ["cafe\u0301", "_very_"],
    ),
    ("keywords:letter_frequency", {"letter": "E", "let_frequency": 2}, ["eE", "here"], ["her"]),
    (
        "keywords:letter_frequency",
        {"letter": "!", "let_frequency": 1, "let_relation": "less than"},
        ["no"],
        ["yes!", "!!"],
    ),
    (
        "keywords:existence",
        {"keywords": ["don't", "climate change"]},
        ["I don’t see climate\nchange"],
        ["don't change"],
    ),
    ("keywords:frequency", {"keyword": "don't", "frequency": 2}, ["don’t, don't"], ["don't do not"]),
    ("keywords:letter_frequency", {"letter": "é", "let_frequency": 2}, ["e\u0301é"], ["eé"]),
    ("keywords:order", {"keywords": ["one", "two"]}, ["One, then two."], ["two, then one", "one"]),
    ("keywords:order", {"keywords": ["don't", "go"]}, ["I don’t go"], ["go, don't"]),
    ("language:response_language", {"language": "de"}, [GERMAN], [ENGLISH]),
    (
        "language:response_language",
        {"language": "zh-cn"},
        ["河水缓缓流过古城，穿过三座桥，最后流入大海。"],
        [ENGLISH, GERMAN],
    ),
    ("language:response_language", {"language": "en"}, [ENGLISH, "ok"], [GERMAN]),
    ("length_constraints:number_words", {"num_words": 3, "relation": "at least"}, ["a b c"], ["a b", "...", ""]),
    ("length_constraints:number_words", {"num_words": 3.0, "relation": "less than"}, ["a, b!"], ["a b c", "don't go"]),
    ("length_constraints:number_sentences", {"num_sentences": 2}, ["One. Two!", "Is it? Yes."], ["One.", "3.5 is it."]),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, ["a\n***\nb", "***\na\n***\nb"], ["a\n\nb"]),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, ["a\n\n***\n\nb"], ["a\n***\n\n***\nb"]),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        ["***Note:*** a\n***\nb", "a *** b", "a.***\nb"],
        ["***a*** b ***c***", "a ***b*** c"],
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Now"},
        ["a\n\nnow b", 'a\n\n\n"Now", he said'],
        ["now a\n\nb", "now a", "a\n\nnow\n\nc", "a\n\nnowhere"],
    ),
    ("length_constraints:number_characters", {"num_characters": 5}, [" abcde \n", "cafe\u0301s"], ["abcdef"]),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "don't"},
        ["Don’t go", "don't"],
        ["do not"],
    ),
    (
        "length_constraints:number_words",
        {"num_words": 2, "relation": "exactly"},
        ["हिन्दी भाषा", "e\u0301lan vital", "می‌خواهم بروم", "I ❤️ it", "ภาษา ก็ดี"],
        ["हिन्दी"],
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "हिन्दी"},
        ["हिन्दी भाषा", "❤️ हिन्दी"],
        ["हिन भाषा", "हिन्दीवाला"],
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "'Twas"},
        ["'Twas night", "_’Twas_ night", "__'Twas__ night"],
        ["Was it?", "'Twas-like"],
    ),
    ("keywords:forbidden_words", {"forbidden_words": ["हिन", "no"]}, ["हिन्दी"], ["हिन भाषा", "❤️no"]),
    ("keywords:forbidden_words", {"forbidden_words": ["हिन्दी"]}, ["हिन्दीवाला"], ["हिन्दी।"]),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 1, "capital_relation": "exactly"},
        ["E\u0323\u0300KO\u0323\u0301 ni", "❤️ A", "H₂O"],
        ["E\u0323\u0300KO\u0323\u0301 NI"],
    ),
    (
        "length_constraints:number_lines",
        {"num_lines": 2},
        ["a\n\nb\n", "a\u2028b\x0c\nc"],
        ["a", "a\nb\nc", "a\u2028b"],
    ),
    ("length_constraints:sentence_words", {"max_words": 3}, ["One two three. Four."], ["One. Two three four five."]),
    (
        "length_constraints:sentence_words",
        {"max_words": 3},
        ["# A b c\n\nD e f.\n- G h i\n- J k l"],
        ["One two\nthree four"],
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, ["[name] of [place]"], ["[name]", "[a [b"]),
    (
        "detectable_content:number_placeholders",
        {"num_placeholders": 1},
        ["- [Your Name]", "[___]"],
        ["[a link](http://x)", "- [ ] do\n- [x] done", "[]", "as in [1]"],
    ),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        ["Bye.\nP.S. More.", "P.P.S. a\nP. S. b"],
        ["Bye.", "PS more", "P.P.S. x", "P. P. S. x"],
    ),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, ["Bye.\nP.P.S more"], ["P.S. more"]),
    ("detectable_content:postscript", {"postscript_marker": "NB:"}, ["Bye.\nnb: more"], ["Bye."]),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, ["* a\n* b", "x\n- a\n  - b"], ["* a", "**a**\n* b"]),
    (
        "detectable_format:number_bullet_lists",
        {"num_bullets": 2},
        ["> * a\n> * b", "> > - a\n>- b"],
        ["> a\n> b", "> --> a"],
    ),
    ("detectable_format:number_bullet_lists", {"num_bullets": 1}, ["x\n\n---\n* a", "* * *\n*A*\n- a"], ["-5\n---"]),
    ("detectable_format:constrained_response", {}, ["Well. My answer is maybe."], ["yes", "My answer is Yes."]),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        ["*a* *b*", "**a** *b*", "* *a* x\n* *b* y", "* *a* **b**:"],
        ["*a*", "* *", "* **a** x", "***a***", "2 * 3 * 4 * 5 * 6"],
    ),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "PART", "num_sections": 2},
        ["PART 1\na\nPART 2\nb"],
        ["PART 1\na", "part 1 part 2"],
    ),
    (
        "detectable_format:json_format",
        {},
        ['{"a": 1}', '```json\n{"a": [1]}\n```', "```\n[]\n```"],
        ['Here: {"a": 1}', "{'a': 1}", "[NaN]", "[" * 100_000],
    ),
    (
        "detectable_format:json_keys",
        {"keys": ["a", "b"]},
        ['{"b": 1, "a": 2}', 'So: {"a": 1, "b": {}}', '{"a": 1, "b": 2}\nNot {"c": 3}'],
        ['{"a": 1}', '{"a": 1, "b": 2, "c": 3}', "[1]", "no"],
    ),
    ("detectable_format:title", {}, ["<<Rivers>>\ntext", "# <<A > B>>"], ["Rivers", "<<>>", "<< >>", ">>a<<"]),
    (
        "detectable_format:numbered_list",
        {"num_items": 2},
        ["> 1. a\n> 2. b", "## 1. A\na\n## 2. B\nb", "# 1. A\n1. a\n2. b", "### **1. A**\n### **2. B**"],
        ["# 1. A\n# 2. B\n1. a", "#1. a\n#2. b"],
    ),
    ("detectable_format:numbered_list", {"num_items": 2}, ["1. a\n2. b", "1) a\n\n2) b"], ["1. a", "1.5 a\n2.5 b"]),
    (
        "detectable_format:number_bullet_lists",
        {"num_bullets": 2},
        ["- a\n```yaml\n- x\n```\n- b", "```markdown\n- a\n- b\n```", "```\n- a\n- b\n```"],
        ["- a\n```yaml\n- b\n```"],
    ),
    (
        "detectable_format:numbered_list",
        {"num_items": 2},
        ["1. a\n   1. x\n   2. y\n2. b", "1. a\n```\n1. x\n```\n2. b", "- A\n    1. a\n- B\n    1. b", " 9. a\n10. b"],
        ["1. a\n   1. x", "1. a\n2. b\n3. c"],
    ),
    (
        "detectable_format:numbered_list",
        {"num_items": 2},
        ["**1. A**\nx\n**2. B**\ny", "**1.** A\n**2.** B"],
        ["**A**"],
    ),
    (
        "detectable_format:table",
        {"columns": ["a | b", "Don't"]},
        ["| a \\| b | Don’t |\n|---|---|\n| 1 | 2 |"],
        ["| a | b | Don't |\n|---|---|---|\n| 1 | 2 | 3 |"],
    ),
    (
        "detectable_format:table",
        {"columns": ["Name", "Age"], "min_rows": 2},
        [TABLE, "| **name** | age |\n|---|---|\n|a|1|\n|b|2|"],
        ["Name | Age", TABLE.replace("| Bea | 4 |\n", ""), TABLE.replace("Age", "Size"), ""],
    ),
    (
        "detectable_format:code_block",
        {"language": "python"},
        ["Do:\n```python\nx = 1\n```"],
        ["x = 1", "```\nx\n```", "```js\nx\n```"],
    ),
    ("detectable_format:code_block", {"language": "python"}, ["```Python\nx\n```"], ["```py\nx\n```"]),
    ("detectable_format:code_block", {"language": "markdown"}, ["```markdown\n# x\n```"], ["```\n# x\n```"]),
    ("combination:two_responses", {}, ["a\n******\nb"], ["a", "a******a", "a******b******c", "a******  ******b"]),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say  'hi'\nnow."}, ["say ‘hi’ now. Hi!"], ["Say hi now."]),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi."}, ["say hi.\nHi!"], ["Hi!", "Sure: Say hi."]),
    ("startend:start_checker", {"start_phrase": "Well,"}, ["well, yes", '"Well, yes"'], ["Oh well, yes"]),
    ("startend:start_checker", {"start_phrase": "Yes"}, ["Yes, all", "“Yes”"], ["Yesterday"]),
    ("startend:end_checker", {"end_phrase": "That's all!"}, ["So: “That’s all!”", "That's\nall!"], ["all!"]),
    ("startend:end_checker", {"end_phrase": 'say "no"'}, ['I say "no"', "I say “no”"], ["I say no way"]),
    ("startend:end_checker", {"end_phrase": "end"}, ["It is the end", "**1** end", "THE END"], ["My friend", "End."]),
    ("startend:end_checker", {"end_phrase": "The end."}, ["It was. THE END.", '"... the end."'], ["The end. Bye"]),
    ("startend:quotation", {}, ['"all of it"', ' "a" and "b" '], ['"', 'some "of" it', "“curly”"]),
    ("change_case:capital_word_frequency", {"capital_frequency": 2}, ["A BIG one", "NASA-like UN I"], ["One BIG"]),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 1, "capital_relation": "less than"},
        ["none here"],
        ["ONE"],
    ),
    (
        "change_case:english_capital",
        {},
        [ENGLISH.upper(), "RED 42!"],
        [ENGLISH, "ONE SMALL lAPSE", "42", GERMAN.upper()],
    ),
    ("change_case:english_lowercase", {}, [ENGLISH, "* red\n* green"], ["One", "42", GERMAN.lower()]),
    ("punctuation:no_comma", {}, ["a; b"], ["a, b", "你好，世界", "你好、世界", "مرحبا، عالم"]),
    ("punctuation:forbidden_marks", {"marks": "!?"}, ["a."], ["a!", "what?"]),
]


@pytest.mark.parametrize(
    ("name", "kwargs", "follow", "do_not"), KINDS, ids=[f"{i}-{k[0]}" for i, k in enumerate(KINDS)]
)
def test_each_kind_accepts_and_rejects_the_right_texts(
    name: str, kwargs: dict[str, Any], follow: list[str], do_not: list[str]
) -> None:
    constraint = CONSTRAINTS[name].model_validate(kwargs)
    assert [constraint.problem(text) for text in follow] == [""] * len(follow)
    for text in do_not:
        assert constraint.problem(text), text[:100]


def test_every_kind_has_examples_and_a_summary() -> None:
    assert {kind for kind, *_ in KINDS} == set(CONSTRAINTS)
    assert all(kind.summary.endswith(".") and kind.id == name for name, kind in CONSTRAINTS.items())


def test_all_25_kinds_of_ifeval_are_known() -> None:
    assert sum(kind.in_ifeval for kind in CONSTRAINTS.values()) == 25


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Dr. Smith met Mrs. Jones at 3.15 p.m. on Monday. They talked.", 2),
        ("E.g. Berlin is large. Approx. 3.9 million live there. Cf. Figs. 2 and 3.", 3),
        ("Ca. 50 came. Messrs. Smith and Jones did not. Art. 5 and Refs. 2 and 3 say why.", 3),
        ("It is art. 5 people came.", 2),
        ("Use fruit, e.g. apples. Or pears, etc. Then stop.", 3),
        ("J. R. R. Tolkien wrote it. Who else?", 2),
        ('He said "Stop!" and left. She stayed...', 2),
        ('he said "stop!" she stayed... it rained', 3),
        ('He said "Stop!" She stayed… He left.', 3),
        ("Sgt. Pepper met Gen. Lee on Mt. Everest. Sen. Warren left.", 2),
        ("1. First do this.\n2. Then that.", 2),
        ("I choose option A. It is best.", 2),
        ("It was me and I. We left the U.S. Then we came back.", 3),
        ("A. The first one.\nB. The second one.", 2),
        ("She joined the U.S. Army with George W. Bush.", 1),
        ("No. Never!", 2),
        ("Smith et al. found it.", 1),
        ("Smith et al. (2020) found it. So did Lee et al. It holds.", 3),
        ("It grew.[1] Then it fell. [2]", 2),
        ("It grew.¹ Then it fell.[1][^2]\nIt rose.", 3),
        ("Smith et al. [1] found it. [2] So did Lee.", 2),
        ("是的。[1]真的？[2]", 2),
        ("It grew. [1](http://a.b) Then it fell.", 2),
        ("Use arrays. [a] is one. So is b[0]. [1] Next", 4),
        ("No. 5 is best. See Fig. 3 and pp. 3-4, vol. 2.", 2),
        ("It began in Jan. 2020 and ended on Sept. 3.", 1),
        ("It opened in Jan. and closed in Feb. again. It weighs 5 lbs. and is approx. 6 ft. tall.", 2),
        ("The firm (est. 1990) sells max. 5 items, ca. 9 kg each. See Elm Ave. at noon.", 2),
        ("Main St. is closed. I live on Main St. It is nice in St. Louis.", 3),
        ("Er kam spät, d.h. um 5 Uhr, z.B. mit Obst. Usó p.ej. el pan.", 2),
        ("E.g. apples. He works at XYZ Corp. in Texas. She works at XYZ Corp. He does not.", 4),
        ("Use it at max. Then rest for a min. Then go on. This costs 5 ft. Then stop.", 5),
        ("Es gibt z. B. rote Äpfel, d. h. Obst. Bzw. Birnen u. a. auch, vgl. Bild 3. Gut.", 3),
        ("Nimm z.B. Birnen, d. h. Obst bzw. Gemüse. Fertig.", 2),
        ("It is so. it is. I do it. go on.", 4),
        ("He said no. 12 people left. They met in Jan. They parted.", 4),
        ("Wait... what?! Yes.", 2),
        ("没有。是的！真的吗？", 3),
        ("यह अच्छा है। वह बुरा है।", 2),
        ("هل أنت بخير؟ نعم.", 2),
        ("no mark at all", 1),
        ("... !!!", 0),
    ],
)
def test_abbreviations_and_initials_do_not_end_a_sentence(text: str, count: int) -> None:
    assert len(sentences(text)) == count, sentences(text)


@pytest.mark.parametrize("text", ["." * 200_000 + "x", "*" * 200_000, "[" * 200_000, "<<" * 100_000, "\n \n" * 60_000])
@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_checks_never_raise(name: str, text: str) -> None:
    kwargs = next(kwargs for kind, kwargs, *_ in KINDS if kind == name)
    assert isinstance(CONSTRAINTS[name].model_validate(kwargs).problem(text), str)


# ---- as IFEval counts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1. First do this.\n2. Then that.", 4),
        ("Use fruit, e.g. Apples. Or pears.", 3),
        ("Dr. Smith met Mrs. Jones in the U.S. Senate. They talked.", 2),
        ("It costs 3.15 dollars. Really? Yes!", 3),
        ("It ended at 5 p.m. The rest went home.", 2),
        ("no mark at all", 1),
    ],
)
def test_ifeval_counts_sentences_as_punkt_does(text: str, count: int) -> None:
    assert len(ifeval.sentences(text)) == count, ifeval.sentences(text)


def capitals(text: str, count: int, **options: Any) -> bool:
    chosen = InstructionsOptions.model_validate(
        {
            "ids": ["change_case:capital_word_frequency"],
            "kwargs": [{"capital_frequency": count, "capital_relation": "exactly"}],
            **options,
        }
    )
    return not chosen.constraints()[0].problem(text)


@pytest.mark.parametrize("checks", ["standard", "ifeval"])
def test_abbreviation_with_full_stops_is_one_capital_word(checks: str) -> None:
    assert capitals("They came to the U.S. with a NASA-led team", 1, checks=checks)


@pytest.mark.parametrize(("checks", "count"), [("standard", 1), ("ifeval", 3)])
def test_ifeval_counts_words_without_combining_marks(checks: str, count: int) -> None:
    arguments = {"num_words": count, "relation": "exactly"}
    options = InstructionsOptions.model_validate(
        {"ids": "length_constraints:number_words", "kwargs": arguments, "checks": checks}
    )
    assert not options.constraints()[0].problem("हिन्दी")


@pytest.mark.parametrize(
    ("text", "language", "followed"),
    [(GERMAN, "de", True), (GERMAN, "en", False), ("42!", "en", True), ("la casa es muy grande y bonita", "en", False)],
)
def test_ifeval_language_check_passes_text_of_unknown_language(text: str, language: str, followed: bool) -> None:
    options = InstructionsOptions.model_validate(
        {"ids": "language:response_language", "kwargs": [{"language": language}], "checks": "ifeval"}
    )
    assert [not options.constraints()[0].problem(text) for _ in range(3)] == [followed] * 3


def test_unlikely_language_is_rejected_if_detection_is_unsure() -> None:
    constraint = CONSTRAINTS["language:response_language"].model_validate({"language": "en"})
    assert constraint.problem("la casa es")
    assert not constraint.problem("ok")


@pytest.mark.parametrize(
    "text",
    [
        "." * 200_000 + "x",
        "*" * 200_000,
        "[" * 200_000,
        "\n \n" * 60_000,
        pytest.param("a. " * 30_000, marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("name", sorted(ifeval.AS_IN_IFEVAL))
def test_checks_of_ifeval_never_raise(name: str, text: str) -> None:
    kwargs = next(kwargs for kind, kwargs, *_ in KINDS if kind == name)
    assert isinstance(ifeval.AS_IN_IFEVAL[name].model_validate(kwargs).problem(text), str)


async def test_detail_lists_strict_and_loose_outcome_of_each_instruction() -> None:
    verdict = await judged("Sure, here it is:\nno commas here", "punctuation:no_comma")
    (outcome,) = verdict.detail["instructions"]
    assert (outcome["followed"], outcome["strict"], outcome["loose"]) == (False, False, True)


# ---- the rule --------------------------------------------------------------------------------------------------------


async def judged(text: str, ids: Any, kwargs: Any = (), **options: Any) -> Verdict:
    submission = Submission(
        case=CaseData(id="c"),
        key=CallKey(purpose="answer", environment="e", case="c"),
        rule="instructions",
        text=text,
        messages=[{"role": "assistant", "content": text}],
    )
    chosen = InstructionsOptions.model_validate({"ids": ids, "kwargs": list(kwargs), **options})
    return await SCORERS["instructions"].score(chosen, submission, Services())


BOTH = (["punctuation:no_comma", "detectable_format:number_bullet_lists"], [{}, {"num_bullets": 1}])


def test_deeply_nested_arguments_in_a_table_are_rejected() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        InstructionsOptions.model_validate({"ids": "punctuation:no_comma", "kwargs": "[" * 100_000})


async def test_all_instructions_must_be_followed_and_each_outcome_is_listed() -> None:
    assert (await judged("* one", *BOTH)).value == 1
    verdict = await judged("* one\n* two", *BOTH)
    assert verdict.value == 0
    assert verdict.reason == (
        "1 of 2 instructions not followed. detectable_format:number_bullet_lists: it has 2 bullets, not exactly 1."
    )
    assert [outcome["followed"] for outcome in verdict.detail["instructions"]] == [True, False]


async def test_partial_scores_the_share_of_instructions() -> None:
    assert (await judged("* one\n* two", *BOTH, partial=True)).value == 0.5


async def test_empty_answer_follows_no_instruction() -> None:
    verdict = await judged(" \n", "punctuation:no_comma")
    assert (verdict.value, verdict.detail["followed"]) == (0, 0)


async def test_reasoning_is_not_checked() -> None:
    assert (await judged("<think>well, hm</think>fine", "punctuation:no_comma")).value == 1


@pytest.mark.parametrize(
    ("text", "ids", "kwargs"),
    [
        ("Sure, here it is:\nno commas here", "punctuation:no_comma", {}),
        ("no commas here\nHope that helps, friend!", "punctuation:no_comma", {}),
        ("Sure, here:\nno commas\nBye, friend!", "punctuation:no_comma", {}),
        ("Here it goes:\n**THE END.**", "startend:end_checker", {"end_phrase": "the end."}),
    ],
)
async def test_loose_mode_ignores_introduction_closing_remark_and_emphasis(text: str, ids: str, kwargs: Any) -> None:
    assert (await judged(text, ids, [kwargs])).value == 0
    assert (await judged(text, ids, [kwargs], mode="loose")).value == 1


async def test_loose_mode_rejects_empty_variants() -> None:
    assert (await judged("one, line", "punctuation:no_comma", mode="loose")).value == 0


def test_loose_mode_tries_eight_variants() -> None:
    assert variants("a\n*b*\nc") == ["a\n*b*\nc", "*b*\nc", "a\n*b*", "*b*", "a\nb\nc", "b\nc", "a\nb", "b"]


async def test_null_kwargs_of_table_rows_are_ignored() -> None:
    nulls = {"num_bullets": 1.0, "relation": None, "keywords": None}
    assert (await judged("* one", "detectable_format:number_bullet_lists", [nulls])).value == 1
    assert (await judged("* one", "detectable_format:number_bullet_lists", ['{"num_bullets": 1}'])).value == 1


@pytest.mark.parametrize(
    ("ids", "kwargs", "problem"),
    [
        (["nothing:such"], [], "unknown instruction 'nothing:such'; known are change_case:capital_word_frequency"),
        (["punctuation:no_comma"], [{"num": 1}], "punctuation:no_comma.num: unknown key"),
        (["length_constraints:number_words"], [{}], "number_words.num_words: missing; this key is required"),
        (
            ["length_constraints:number_words"],
            [{"num_words": 2.5}],
            "number_words.num_words: must be a valid int",
        ),
        (["length_constraints:number_words"], [{"num_words": 3, "relation": "about"}], "number_words.relation"),
        (["language:response_language"], [{"language": "klingon"}], "not a known language code"),
        (["length_constraints:number_words"], [{"nun_words": 3}], "nun_words: unknown key; did you mean 'num_words'"),
        (["punctuation:no_comma"], [{}, {}], "1 ids have 2 kwargs"),
        (["punctuation:no_comma", "punctuation:no_comma"], ["{}", "none"], r"item 1 is text that is not JSON"),
        ([], [], "at least 1"),
        (
            ["length_constraints:nth_paragraph_first_word"],
            [{"num_paragraphs": 1, "nth_paragraph": 2, "first_word": "x"}],
            "but there are only 1 paragraphs",
        ),
    ],
)
def test_invalid_instructions_are_rejected(ids: Any, kwargs: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        InstructionsOptions.model_validate({"ids": ids, "kwargs": kwargs})


@pytest.mark.parametrize(
    ("name", "kwargs", "text", "followed"),
    [
        ("keywords:forbidden_words", {"forbidden_words": ["don't"]}, "I don’t", True),
        ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "---\n* a", True),
        ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "* **a** b", True),
        ("detectable_format:number_highlighted_sections", {"num_highlights": 1}, "* *a* b", False),
        ("punctuation:no_comma", {}, "你好，世界", True),
        ("punctuation:no_comma", {}, "a, b", False),
        ("keywords:existence", {"keywords": ["don't"]}, "I don’t", False),
        ("keywords:frequency", {"keyword": "don't", "frequency": 2}, "don’t don't", False),
        ("startend:end_checker", {"end_phrase": "don't"}, "I don’t", False),
        ("startend:end_checker", {"end_phrase": "end"}, "My friend", True),
        ("detectable_content:postscript", {"postscript_marker": "P.S."}, "P.P.S. x", True),
        ("detectable_format:number_bullet_lists", {"num_bullets": 1}, "- a\u2028- b", True),
        ("detectable_format:number_bullet_lists", {"num_bullets": 1}, "> - a", False),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***Note:***\na", True),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***Note*** a\n***\nb", False),
        ("combination:repeat_prompt", {"prompt_to_repeat": "Don't."}, "Don’t.", False),
        ("detectable_format:json_format", {}, "[NaN]", True),
        ("detectable_format:json_format", {}, "```json\n[1]\n```", True),
        ("detectable_format:json_format", {}, "~~~json\n[1]\n~~~", False),
    ],
)
def test_checks_of_ifeval_do_not_know_other_typography(
    name: str, kwargs: dict[str, Any], text: str, followed: bool
) -> None:
    assert bool(ifeval.AS_IN_IFEVAL[name].model_validate(kwargs).problem(text)) is not followed


@pytest.mark.parametrize(
    ("text", "followed"),
    [
        ("~~~json\n[1]\n~~~", True),
        ("````\n[1]\n````", True),
        ("```JSON\n[1]\n```", True),
        ("```json\n[1]", True),
        ("Here:\n~~~json\n[1]\n~~~", False),
        ("~~~json\n[1]\n~~~\nDone.", False),
        ("~~~python\n[1]\n~~~", False),
        ("~~~\n[1]\n~~~\n~~~\n[2]\n~~~", False),
    ],
)
def test_json_may_be_in_a_fence_of_any_kind(text: str, followed: bool) -> None:
    assert bool(JsonFormat().problem(text)) is not followed
