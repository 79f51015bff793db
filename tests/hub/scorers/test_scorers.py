"""Rules that read the answer's text, and the harness's reward."""

import asyncio
import json
from typing import Any

import pytest

from hub.scorers.comparison.equality import json_equal
from hub.scorers.registry import SCORERS
from tests.hub.scoring import judge

# ---- exact_match -----------------------------------------------------------------------------------------------------


async def test_exact_match_compares_the_whole_answer_or_the_marked_final_answer() -> None:
    target = '{"answer": "C"}'
    assert (await judge("exact_match", target, case={"target": target})).value == 1.0
    assert (await judge("exact_match", target, case={"target": "C"})).value == 1.0


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("XLIX", {}),
        ("  XLIX \n", {}),
        ("Forty-nine is forty and nine.\n\nAnswer: XLIX", {}),
        ("\\boxed{XLIX}", {}),
        ("**XLIX**.", {}),
        ("Yes.", {"target": "Yes."}),
        ("<think>LI?</think>XLIX", {}),
        ("xlix", {"ignore_case": True}),
        ("X-L-I-X", {"target": "X, L, I, X", "ignore_punctuation": True}),
        ("Lake\u00a0 Constance", {"target": ["Bodensee", "Lake Constance"]}),
        ("cafe\u0301", {"target": "café"}),
        ("49", {"target": 49}),
        ("49.0", {"target": 49}),
        ("49", {"target": 49.0}),
        ("foo\\_bar", {"target": "foo_bar"}),
        ("Answer: my\\_var\\_name", {"target": "my_var_name"}),
        ("King’s College", {"target": "King's College"}),
        ("“Yes,” he said", {"target": '"Yes," he said'}),
        ("twenty\u2011one", {"target": "twenty-one"}),
        ("1914–1918", {"target": "1914-1918"}),
        ("\u22125", {"target": "-5"}),
        ("\u200bXLIX", {}),
        ("naive", {"target": "na\u00adive"}),
        ("Answer: **Lund**, Sweden", {"target": "Lund, Sweden"}),
        ("Answer: **Lund**. It is in Skåne.", {"target": "Lund"}),
        ("**The final answer: Lund**. It is in Skåne.", {"target": "Lund"}),
        ("It is in **Skåne**.\n\n**Answer:** the city of **Lund**.", {"target": "the city of Lund"}),
        ("```text\nXLIX\n```", {}),
        ('```json\n{"answer": "XLIX"}\n```', {}),
        ("**Answer:**\n\n```bash\nls -la\n```", {"target": "ls -la"}),
        ("Answer: `__init__`", {"target": "__init__"}),
        ("The answer is _id.", {"target": "_id"}),
        ("`*args`", {"target": "*args"}),
        ("\\boxed{\\{1, 2\\}}", {"target": "{1, 2}"}),
        ('{"result": {"answer": "XLIX"}}', {}),
        ('{"answer": "XLIX", "choice": null}', {}),
        ("**Lund** and **Malmö**", {"target": "Lund and Malmö"}),
        ("true", {"target": True}),
        ("The answer is Smith & Co.", {"target": "Smith & Co."}),
        ("The answer is Smith & Co", {"target": "Smith & Co."}),
        ("The answer is v1.2.3.", {"target": "v1.2.3"}),
        ('{"answer": [true, null]}', {"target": "true, null"}),
        ("\\boxed{50\\%}", {"target": "50%"}),
        ("$\\boxed{\\$1,\\!000}$", {"target": "$1,000"}),
        ("\\boxed{\\dfrac{1}{2}}", {"target": "\\frac{1}{2}"}),
        ("Answer: $\\{1\\}$", {"target": "{1}"}),
        ("3", {"target": 3.0}),
        ("答えは東京です。", {"target": "東京"}),
        ("정답은 서울입니다.", {"target": "서울"}),
        ("답: 서울입니다", {"target": "서울입니다"}),
        ("Answer: # comment", {"target": "# comment"}),
        ("**Answer:** ## Lund", {"target": "## Lund"}),
        ("Lund\n\nLet me know if you need more.", {"target": "Lund"}),
        ('{"answer": "Lund", "option": "B"}', {"target": "Lund"}),
        ('{"answer": "Lund", "result": "correct"}', {"target": "Lund"}),
        ("x²", {"target": "x^2"}),
        ("x ≥ 5", {"target": "x >= 5"}),
        ("x <= 5", {"target": "x ≤ 5"}),
        ("½", {"target": "1/2"}),
        (r"\$42", {"target": "$42"}),
        (".5", {"target": "0.5", "ignore_punctuation": True}),
        (r"\boxed{XLIX} or \boxed{XLIX}", {}),
        ("(x + 1)^2", {"target": "(x + 1)²"}),
        ("The answer is Lund!", {"target": "Lund"}),
        ("2**3", {"target": "2**3"}),
        ("\ufeffXLIX\r\n", {"extract": "whole"}),
        ("«XLIX»", {}),
        ("„XLIX“", {}),
        ("5²", {"target": "5^2"}),
        ("10⁻³", {"target": "10^-3"}),
        ("9 m2", {"target": "9 m²"}),
        ("H₂O", {"target": "H2O"}),
        ("-5!", {"target": "-5", "ignore_punctuation": True}),
        ("1914, 1918", {"target": "1914-1918", "ignore_punctuation": True}),
        ("- Lund", {"target": "Lund"}),
        ("- **Lund**", {"target": "Lund"}),
        ("Answer:\n- Lund.", {"target": "Lund"}),
        ("> Lund", {"target": "Lund"}),
        ("• Lund", {"target": "Lund"}),
        ("• 5", {"target": "5"}),
        ("- Lund", {"target": "- Lund"}),
        (r"42\%", {"target": "42%"}),
    ],
)
async def test_exact_match_passes_equal_answers(text: str, options: dict[str, Any]) -> None:
    assert (await judge("exact_match", text, case={"target": "XLIX"}, **options)).value == 1.0


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {}),
        ("xlix", {}),
        ("IL", {}),
        ("XLIX or IL", {}),
        ("Answer: XLIX", {"extract": "whole"}),
        ("**XLIX**.", {"extract": "whole"}),
        ("<think>XLIX</think>", {}),
        ("5²", {"target": "52"}),
        ("5!", {"target": "5"}),
        ("2**3**2", {"target": "232"}),
        ("Lund!", {"target": "Lund", "extract": "whole"}),
        ("Answer: init", {"target": "__init__"}),
        ("f(**a, **b)", {"target": "f(a, b)"}),
        ("f(a, **b)", {"target": "f(a, b)"}),
        ("Not this:\n```\nXLIX\n```", {}),
        ("true", {"target": "True"}),
        ("Lund.", {"target": "Lund", "extract": "whole"}),
        ("Lund...", {"target": "Lund"}),
        ("Answer: `\\{1\\}`", {"target": "{1}"}),
        ("Answer: `\\$HOME`", {"target": "$HOME"}),
        ("1", {"target": True}),
        ("3", {"target": "3.0"}),
        ("3", {"target": 3.5}),
        ("XLIX\n\nLet me know if you need more.", {"extract": "whole"}),
        ("XLIX\n\nOr IL.", {}),
        ("XLIX\n\nLet me know if it is IL instead.", {}),
        ("XLIX\n\nI hope this helps.\n\nOr IL.", {}),
        ("```\nXLIX\n```\n```\nIL\n```", {}),
        ("-5", {"target": "5", "ignore_punctuation": True}),
        ("5", {"target": "-5", "ignore_punctuation": True}),
        (".5", {"target": "5", "ignore_punctuation": True}),
        ("2½", {"target": "21/2"}),
        (r"\boxed{IL} or \boxed{XLIX}", {}),
        (r"$\boxed{IL}$ or $\boxed{XLIX}$.", {}),
        ("≥ 5", {"target": "≤ 5"}),
        ("a => b", {"target": "a ≥ b"}),
        ("a <=> b", {"target": "a ≤> b"}),
        ("!", {"target": "?", "ignore_punctuation": True}),
        ("- Lund\n- Malmö", {"target": "Lund"}),
        ("- Lund", {"target": "Lund", "extract": "whole"}),
        ("- x", {"target": "x"}),
        ("- 5", {"target": "5"}),
        ("> 5", {"target": "5"}),
        ("- sin(x)", {"target": "sin(x)"}),
        ("- infinity", {"target": "infinity"}),
        ("- sqrt 2", {"target": "sqrt 2"}),
        ("-Lund", {"target": "Lund"}),
        ("", {"target": "?", "ignore_punctuation": True}),
    ],
)
async def test_exact_match_fails_different_answers(text: str, options: dict[str, Any]) -> None:
    verdict = await judge("exact_match", text, case={"target": "XLIX"}, **options)
    assert verdict.value == 0.0
    assert f"Expected {str(options.get('target', 'XLIX'))!r}, found" in verdict.reason


@pytest.mark.parametrize("target", [None, [], "", ["XLIX", " "]])
def test_exact_match_without_target_is_rejected(target: Any) -> None:
    with pytest.raises(ValueError, match="a target is missing or empty"):
        SCORERS["exact_match"].Options.model_validate({"target": target})


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        ("exact_match", "~~A~~ B", 1.0),
        ("exact_match", "Answer: ~~A~~ **B**", 1.0),
        ("exact_match", "~~B~~ A", 0.0),
        ("includes", "~~B~~ A", 0.0),
        ("includes", "~~A~~ B", 1.0),
        ("choice", "~~A~~ B", 1.0),
        ("choice", "Answer: ~~B~~ A", 0.0),
        ("choice", "~~B~~", 0.0),
    ],
)
async def test_text_that_is_struck_through_is_no_answer(rule: str, text: str, value: float) -> None:
    assert (await judge(rule, text, target="B")).value == value


@pytest.mark.parametrize("text", ["~~41~~ 42", "Answer: ~~41~~ 42", "It is ~~41~~ **42**", "~~~\n42\n~~~"])
async def test_number_that_is_struck_through_is_no_answer(text: str) -> None:
    assert (await judge("number", text, target=42)).value == 1.0
    assert (await judge("number", text, target=41)).value == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "a" + "\n" * 100_000 + "b",
        "\\(" * 100_000,
        "$" * 100_000 + "`" * 100_000,
        '"answer": 1, "option": 2, ' * 20_000,
        pytest.param("15 " * 100_000, marks=pytest.mark.exhaustive),
        "1" * 200_000,
        pytest.param("x²" * 100_000, marks=pytest.mark.exhaustive),
        "_{" * 100_000,
    ],
)
@pytest.mark.parametrize("rule", ["exact_match", "includes"])
@pytest.mark.timeout(40)
async def test_long_texts_are_compared_in_linear_time(rule: str, text: str) -> None:
    """This takes a second. With quadratic patterns it would exceed the time limit."""
    assert (await judge(rule, text, target="5 km")).value == 0.0


# ---- includes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "text", "value"),
    [
        ("any", "It is the heat that leaves.", 1.0),
        ("any", "A Vacuum\nflask", 1.0),
        ("any", "A bottle.", 0.0),
        ("all", "No heat crosses a vacuum.", 1.0),
        ("all", "No heat.", 0.0),
        ("any", "<think>heat</think>A bottle.", 0.0),
        ("any", "A vac\u00aduum.", 1.0),
        ("any", "A **vac**uum.", 0.0),
        ("all", "No **he**-**at** but heat, and a **vacuum**", 1.0),
    ],
)
async def test_includes_looks_for_any_or_all_targets(match: str, text: str, value: float) -> None:
    assert (await judge("includes", text, target=["vacuum", "heat"], match=match)).value == value


async def test_includes_reads_bold_parts_and_escaped_marks_as_shown() -> None:
    assert (
        await judge(
            "includes", "It is **5** km away, in **Lund**, Sweden.", target=["5 km", "Lund, Sweden"], match="all"
        )
    ).value
    assert (await judge("includes", r"It is foo\_bar, at 50\%.", target=["foo_bar", "50%"], match="all")).value
    assert not (await judge("includes", "It is 2**3 km.", target="23 km")).value
    assert not (await judge("includes", "Version 1.2.30", target="1.2.3")).value
    assert not (await judge("includes", "Write f(a, **b).", target="f(a, b)")).value


@pytest.mark.parametrize(
    ("text", "target", "value"),
    [
        ("It is 15 km away.", "5 km", 0.0),
        ("It is 2.5 km away.", "5 km", 0.0),
        ("It is 50", "5", 0.0),
        ("In 1,945 days", "1", 0.0),
        ("It is 5.3", "5", 0.0),
        ("Not 15 km but 5 km.", "5 km", 1.0),
        ("It is 5.", "5", 1.0),
        ("It is 5.0", "5", 1.0),
        ("It is 0.50", "0.5", 1.0),
        ("It is 0.505", "0.5", 0.0),
        ("At 05:30", "5:30", 1.0),
        ("1,2,3", "2", 1.0),
        ("On 8.5.1945", "1945", 1.0),
        ("In 1'945 days", "945", 0.0),
        ("In '45 and '46", "45", 1.0),
        ("ISO8601-compliant", "ISO8601", 1.0),
        ("version 10a", "10", 1.0),
        ("It is -5", "5", 0.0),
        ("x=−5", "5", 0.0),
        ("It is −5.", "-5", 1.0),
        ("- 5 apples", "5 apples", 1.0),
        ("3-5 km", "5 km", 1.0),
        ("COVID-19", "19", 1.0),
        ("It is 10⁸", "10", 0.0),
        ("It is 5**2", "5", 0.0),
        ("**5** km", "5", 1.0),
        ("x ≥ 5", "= 5", 0.0),
        ("x ≥ 5", ">= 5", 1.0),
        ("It is 5/6.", "5", 0.0),
        ("It is 5/6.", "6", 0.0),
        ("It is 5/6.", "5/6", 1.0),
        ("It is 5 / 6.", "5", 0.0),
        ("It is 5⁄6.", "6", 0.0),
        (r"It is $\frac{5}{6}$.", "5", 0.0),
        (r"It is $\dfrac{5}{6}$.", "6", 0.0),
        ("It is 1/5 km.", "5 km", 0.0),
        ("It is 5 1/2 km.", "5", 0.0),
        ("It is 1 3/4 cups.", "3/4", 0.0),
        ("It is 1/2, or 5.", "5", 1.0),
        ("On 5/6/2024", "5", 1.0),
        ("In the season 2023/24", "2023", 1.0),
        ("60 km/h", "60", 1.0),
        ("5/week", "5", 1.0),
        ("It is 5e3.", "5", 0.0),
        ("It is 1e10.", "10", 0.0),
        ("It is 6.02E-23.", "23", 0.0),
        ("It is S01E10.", "10", 1.0),
        ("It is 5 × 10³.", "5", 0.0),
        (r"It is $5 \times 10^3$.", "5", 0.0),
        ("It is 5 × 10.", "5", 1.0),
    ],
)
async def test_includes_finds_no_target_within_a_longer_number(text: str, target: str, value: float) -> None:
    assert (await judge("includes", text, target=target)).value == value


@pytest.mark.parametrize(
    ("text", "target", "value"),
    [
        ("Use `a` and `b`.", "a and b", 1.0),
        ("Water is $H_2O$.", "H2O", 1.0),
        ("It costs $1{,}000$ francs.", "1,000", 1.0),
        (r"It is $50\%$.", "50%", 1.0),
        ("It is $x^{2}$.", "x^2", 1.0),
        ("It is 5½.", "5", 0.0),
        ("Water is \\(\\text{H}_{2}\\text{O}\\).", "H2O", 1.0),
        ("Water is H<sub>2</sub>O.", "H2O", 1.0),
        ("It is x².", "x^2", 1.0),
        ("It is $5^2$.", "52", 0.0),
        ("Use `snake_case`.", "snakecase", 0.0),
        ("```\necho `date`\n```", "echo date", 0.0),
    ],
)
async def test_includes_reads_prose_as_it_is_shown(text: str, target: str, value: float) -> None:
    assert (await judge("includes", text, target=target)).value == value


@pytest.mark.parametrize(
    ("text", "target", "value"),
    [
        ("It is 3.", 3.0, 1.0),
        ("It is 3.0.", 3, 1.0),
        ("It is 3 or 5.", [3.0, 5.0], 1.0),
        ("It is 13.", 3.0, 0.0),
        ("It is 3.5.", 3.0, 0.0),
        ("It is 3.", [3.0, 5.0], 0.0),
        ("It is true.", True, 1.0),
        ("It is 3.", "3.0", 0.0),
    ],
)
async def test_includes_finds_targets_that_are_no_texts(text: str, target: Any, value: float) -> None:
    assert (await judge("includes", text, target=target, match="all", ignore_case=False)).value == value


async def test_includes_reason_lists_missing_targets() -> None:
    verdict = await judge("includes", "No heat.", target=["vacuum", "heat"], match="all")
    assert verdict.reason == "The answer lacks 'vacuum'."


async def test_includes_ignores_case_by_default() -> None:
    assert (await judge("includes", "VACUUM", target="vacuum", ignore_case=False)).value == 0.0


@pytest.mark.parametrize("target", ["", None, ["a", " "]])
def test_includes_rejects_empty_target(target: Any) -> None:
    with pytest.raises(ValueError, match="a target is missing or empty"):
        SCORERS["includes"].Options.model_validate({"target": target})


# ---- regex -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "value"),
    [
        ("It was on 2026-03-16.", {"pattern": r"\d{4}-\d\d-\d\d"}, 1.0),
        ("It was on Monday.", {"pattern": r"\d{4}-\d\d-\d\d"}, 0.0),
        ("2026-03-16\n", {"pattern": r"\d{4}-\d\d-\d\d", "match": "full"}, 1.0),
        ("On 2026-03-16", {"pattern": r"\d{4}-\d\d-\d\d", "match": "full"}, 0.0),
        ("YES", {"pattern": "yes", "ignore_case": True}, 1.0),
        ("Un cafe\u0301.", {"pattern": "caf\u00e9"}, 1.0),
        ("Un caf\u00e9.", {"pattern": "cafe\u0301"}, 1.0),
        ("Un cafe\u0301.", {"pattern": "[A-Z]\\w caf[\u00e8\u00e9]\\.", "match": "full"}, 1.0),
        ("Un cafe\u0301.", {"pattern": "cafe"}, 0.0),
        ("Un cafe\u0301.", {"pattern": "Un (.*)\\.", "target": "caf\u00e9"}, 1.0),
        ("Un caf\u00e9.", {"pattern": "Un (.*)\\.", "target": "cafe\u0301"}, 1.0),
        ("In Lund", {"pattern": r"in (\w+)", "target": "lund", "ignore_case": True}, 1.0),
        ("In Lund", {"pattern": r"In (\w+)", "target": "lund"}, 0.0),
        ("order 17 of 20", {"pattern": r"order (\d+)", "target": 17}, 1.0),
        ("order 18 of 20", {"pattern": r"order (\d+)", "target": 17}, 0.0),
        ("order 18 of 20", {"pattern": r"order \d+ of (?P<all>\d+)", "target": 20, "group": "all"}, 1.0),
        ("order 17 of 20", {"pattern": r"order (\d+)", "target": 17.0}, 1.0),
        ("order 17 of 20", {"pattern": r"order (\d+)", "target": "17.0"}, 0.0),
        ("order 17.0", {"pattern": r"order ([\d.]+)", "target": 17.0}, 1.0),
        ("It is true.", {"pattern": r"is (\w+)", "target": True}, 1.0),
        ("<think>2026-03-16</think>Monday", {"pattern": r"\d{4}"}, 0.0),
        ("It was\r\nAnswer: 17\r\nsurely", {"pattern": r"(?m)^Answer: (\d+)$", "target": 17}, 1.0),
    ],
)
async def test_regex_passes_if_the_pattern_matches(text: str, options: dict[str, Any], value: float) -> None:
    assert (await judge("regex", text, **options)).value == value


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("abc", {"pattern": "b", "match": "full"}, "The pattern 'b' does not match the whole of 'abc'."),
        ("abc\ndef", {"pattern": "abc.def"}, r"The pattern 'abc.def' is not found in 'abc\ndef'."),
        ("a  b", {"pattern": "a b"}, "The pattern 'a b' is not found in 'a  b'."),
        ("a  b", {"pattern": "(a +b)", "target": "a b"}, "Group 1 is not 'a b' but 'a  b'."),
        ("v=", {"pattern": r"v=(\d)?", "target": "5"}, "Group 1 is not '5' but ''."),
    ],
)
async def test_reason_of_a_regex_shows_what_the_pattern_was_compared_with(text: str, options: Any, reason: str) -> None:
    verdict = await judge("regex", text, **options)
    assert (verdict.value, verdict.reason) == (0.0, reason)


async def test_regex_timeout_leaves_the_answer_unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hub.scorers.regex.PATTERN_TIMEOUT_S", 0.05)
    verdict = await judge("regex", "a" * 60 + "b", pattern=r"^(a|a|aa)+$")
    assert (verdict.value, "took more than" in verdict.reason) == (None, True)


@pytest.mark.parametrize(
    "options", [{"pattern": "b"}, {"pattern": "(b)", "group": 2}, {"pattern": "(?P<a>b)", "group": "b"}]
)
def test_regex_without_the_group_of_its_target_is_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the pattern has no group"):
        SCORERS["regex"].Options.model_validate({**options, "target": "b"})
    SCORERS["regex"].Options.model_validate(options)


async def test_number_of_a_group_may_be_text_as_in_a_csv_file() -> None:
    verdict = await judge("regex", "v=5", pattern=r"(v)=(\d)", group="2", target=5)
    assert (verdict.value, verdict.reason) == (1.0, "Group 2 is '5'.")


def test_invalid_regex_is_rejected() -> None:
    with pytest.raises(ValueError, match="does not compile"):
        SCORERS["regex"].Options.model_validate({"pattern": "("})


# ---- number ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "value"),
    [
        ("The answer is 1,234.5 euros.", {"target": 1234.5}, 1.0),
        ("1/3", {"target": "0.3333333333333"}, 1.0),
        ("-5", {"target": 5}, 0.0),
        ("99", {"target": 100, "relative": 0.01}, 1.0),
        ("98.9", {"target": 100, "relative": 0.01}, 0.0),
        ("3.2", {"target": 3, "tolerance": 0.2}, 1.0),
        ("3.21", {"target": 3, "tolerance": 0.2}, 0.0),
        ("1.3", {"target": 1, "tolerance": 0.3}, 1.0),  # the binary number 0.3 is less than 3/10
        ("103", {"target": 100, "relative": 0.03}, 1.0),
        ("103.01", {"target": 100, "relative": 0.03}, 0.0),
        ("It is 6 + 6 = 12.\n#### 12", {"target": "Six and six.\n#### 12"}, 1.0),
        ("0.1", {"target": 0.1, "tolerance": 0}, 1.0),
        # By default, a small target is not lost in the absolute tolerance.
        ("0", {"target": 1.6e-19}, 0.0),
        ("3.2e-19", {"target": 1.6e-19}, 0.0),
        ("1.6 × 10^-19 C", {"target": 1.6e-19}, 1.0),
        ("1.61e-19", {"target": 1.6e-19, "relative": 0.01}, 1.0),
        ("1.63e-19", {"target": 1.6e-19, "relative": 0.01}, 0.0),
        ("-5e-8", {"target": 5e-8}, 0.0),
        ("0.00005 %", {"target": 5e-7}, 1.0),
        ("0.00006 %", {"target": 5e-7}, 0.0),
        ("0.0000001", {"target": 0}, 1.0),
        ("0.333333", {"target": "1/3"}, 1.0),
        ("3e-7", {"target": 2e-7, "tolerance": 2e-6}, 1.0),
        ("3e-7", {"target": 2e-7}, 0.0),
    ],
)
async def test_number_rule_compares_by_value(text: str, options: dict[str, Any], value: float) -> None:
    verdict = await judge("number", text, **options)
    assert verdict.value == value, verdict.reason


async def test_answer_without_a_number_fails() -> None:
    verdict = await judge("number", "I cannot tell.", target=7)
    assert (verdict.value, verdict.reason) == (0.0, "Expected 7; the answer contains no number.")


@pytest.mark.parametrize("target", [None, "none", True, ""])
def test_number_target_without_a_number_is_rejected(target: Any) -> None:
    with pytest.raises(ValueError, match="contains no number"):
        SCORERS["number"].Options.model_validate({"target": target})


# ---- choice ----------------------------------------------------------------------------------------------------------

PLANETS = ["Mars", "Venus", "Saturn"]


@pytest.mark.parametrize(
    ("target", "target_is"), [("B", "label"), (1, "index"), ("1", "index"), ("Venus", "text")], ids=str
)
async def test_choice_target_is_label_index_or_text(target: Any, target_is: str) -> None:
    options = {"target": target, "target_is": target_is, "choices": PLANETS}
    assert (await judge("choice", "Answer: B", **options)).value == 1.0
    assert (await judge("choice", "Answer: C", **options)).value == 0.0
    assert (await judge("choice", "Venus", **options)).value == 1.0


@pytest.mark.parametrize("answer", ["Answer: A", "Answer: B", "Mars"])
async def test_options_with_the_text_of_the_right_one_are_right(answer: str) -> None:
    options = {"target": "B", "choices": ["Mars", "Mars", "Saturn"]}
    assert (await judge("choice", answer, **options)).value == 1.0
    assert not (await judge("choice", "Answer: C", **options)).value


async def test_answer_that_chooses_no_option_fails() -> None:
    verdict = await judge("choice", "Hard to say.", target="B", choices=PLANETS)
    assert (verdict.value, "chooses none" in verdict.reason) == (0.0, True)


async def test_choice_labels_can_be_customized() -> None:
    assert (await judge("choice", "Answer: 2", target="2", choices=PLANETS, labels=["1", "2", "3"])).value == 1.0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"target": "D", "choices": PLANETS}, "not the label of any choice"),
        ({"target": 3, "target_is": "index", "choices": PLANETS}, "not the index of any choice"),
        ({"target": -1, "target_is": "index", "choices": PLANETS}, "not the index of any choice"),
        ({"target": "Pluto", "target_is": "text", "choices": PLANETS}, "not the text of any choice"),
        ({"target": "A", "choices": PLANETS, "labels": ["A", "B"]}, "3 choices have 2 labels"),
    ],
)
def test_choice_target_that_is_not_an_option_is_rejected(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        SCORERS["choice"].Options.model_validate(options)


# ---- json_schema -----------------------------------------------------------------------------------------------------

TREE = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}, "height_m": {"type": "number", "minimum": 0}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "oak", "height_m": 30}',
        'Here:\n```json\n{"name": "oak"}\n```\nA fine tree.',
        'It is {"name": "oak"} I think.',
        '```json\n{"name": "oak"}\n```\nRead from:\n```\n["oak.txt", "elm.txt"]\n```',
        '{"name": "oak", "name": "oak"}',
    ],
)
async def test_json_is_found_anywhere_in_the_answer(text: str) -> None:
    assert (await judge("json_schema", text, schema=TREE)).value == 1.0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("An oak.", "no JSON value could be read"),
        ('{"height_m": 30}', "'name' is a required property"),
        ('{"name": "oak", "height_m": -2}', "At $.height_m: -2 is less than the minimum of 0"),
        ('{"name": "Oak"}', "does not match"),
        ('{"name": "oak", "age": 9}', "'age' is not allowed"),
        ('{"name": "elm", "name": "oak"}', "the key 'name' has two values"),
    ],
)
async def test_json_schema_problem_has_its_path(text: str, problem: str) -> None:
    verdict = await judge("json_schema", text, schema=TREE)
    assert verdict.value == 0.0
    assert problem in verdict.reason


async def test_json_can_be_compared_with_a_target() -> None:
    options = {"schema": True, "target": {"a": [1, 2], "b": None}}
    assert (await judge("json_schema", '{"b": null, "a": [1.0, 2]}', **options)).value == 1.0
    assert (await judge("json_schema", '{"b": null, "a": [2, 1]}', **options)).value == 0.0


async def test_json_texts_are_compared_by_the_characters_that_are_seen() -> None:
    options = {"schema": True, "target": {"name": ["cafe\u0301", "na\u00adive"]}}
    assert (await judge("json_schema", '{"name": ["café", "naive"]}', **options)).value == 1.0
    assert (await judge("json_schema", '{"name": ["cafe", "naive"]}', **options)).value == 0.0


@pytest.mark.parametrize(
    ("number", "divisor", "value"),
    [
        ("19.99", 0.01, 1.0),
        ("0.3", 0.1, 1.0),
        ("19.995", 0.01, 0.0),
        ("1e400", 2, 0.0),
        ("12345678901234567891", 2, 0.0),
    ],
)
async def test_multiples_are_decimal(number: str, divisor: float, value: float) -> None:
    assert (await judge("json_schema", number, schema={"multipleOf": divisor})).value == value


async def test_slow_schema_pattern_does_not_block_other_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hub.scorers.comparison.schemas.PATTERN_TIMEOUT_S", 0.5)
    schema = {"type": "string", "pattern": "^(a|a|aa)+$"}
    slow = asyncio.create_task(judge("json_schema", json.dumps("a" * 60 + "b"), schema=schema))
    await asyncio.sleep(0)
    ticks = 0
    while not slow.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert slow.result().value is None
    assert ticks > 5


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        (r"^\d+$", "12", 1.0),
        (r"^\d+$", "１２", 0.0),
        (r"^\d+$", "12\n", 0.0),
        (r"^[\d.]+$", "1.2", 1.0),
        (r"^[\d.]+$", "٣", 0.0),
        (r"^\w+$", "é", 0.0),
        (r"^\W$", "é", 1.0),
        (r"^[^\W]+$", "é", 0.0),
        (r"^[^\W]+$", "a^", 0.0),
        (r"^\D$", "１", 1.0),
        (r"^a\sb$", "a\u00a0b", 1.0),
        (r"^\S+$", "a b", 0.0),
        (r"^[$]\$$", "$$", 1.0),
        (r"^[]$]\d$", "$1", 1.0),
        (r"^[a[]\d$", "[1", 1.0),
        (r"^(\d\d|\\d)$", "\\d", 1.0),
    ],
)
async def test_schema_patterns_mean_what_they_mean_in_ecma_262(pattern: str, text: str, value: float) -> None:
    schema = {"pattern": pattern, "propertyNames": {"pattern": pattern}}
    assert (await judge("json_schema", json.dumps(text), schema=schema)).value == value
    keys = {"patternProperties": {pattern: True}, "additionalProperties": False}
    assert (await judge("json_schema", json.dumps({text: 1}), schema=keys)).value == value


async def test_schema_pattern_that_times_out_leaves_the_answer_unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hub.scorers.comparison.schemas.PATTERN_TIMEOUT_S", 0.05)
    schema = {"type": "string", "pattern": "^(a|a|aa)+$"}
    assert (await judge("json_schema", json.dumps("a" * 60 + "b"), schema=schema)).value is None


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "tree"}, "not a JSON Schema"),
        ({"$ref": "http://127.0.0.1:9/secret"}, "is not fetched"),
        ({"properties": {"a": {"pattern": "("}}}, "is not a 'regex'"),
    ],
)
def test_invalid_json_schema_is_rejected(schema: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        SCORERS["json_schema"].Options.model_validate({"schema": schema})


def test_json_schema_target_must_not_be_null() -> None:
    options = SCORERS["json_schema"].Options
    assert options.model_validate({"schema": TREE})
    with pytest.raises(ValueError, match="target is null"):
        options.model_validate({"schema": TREE, "target": None})


# ---- equality --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"), [(1, 1.0), ([1, {"x": 2}], [1.0, {"x": 2.0}]), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), (None, None)]
)
def test_json_numbers_and_key_order_compare_by_value(a: Any, b: Any) -> None:
    assert json_equal(a, b)


@pytest.mark.parametrize(
    ("a", "b"), [(True, 1), (0, False), ("1", 1), ([1, 2], [2, 1]), ({"a": None}, {}), ("Lund", "lund"), (None, 0)]
)
def test_json_values_of_different_type_or_list_order_differ(a: Any, b: Any) -> None:
    assert not json_equal(a, b)


def test_json_keys_may_be_composed_or_not() -> None:
    assert json_equal({"cafe\u0301": 1, "tea": 2}, {"café": 1, "tea": 2})
    assert not json_equal({"cafe\u0301": 1, "café": 1}, {"café": 1})
    assert json_equal({1: "a"}, {1: "a"})


# ---- reward ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reward", "value"),
    [(0.25, 0.25), (1, 1), (None, None), (1.5, None), (-0.1, None), (sum([1 / 9] * 9), 1), (sum([0.1] * 10), 1)],
)
async def test_reward_rule_requires_a_reward_from_0_to_1(reward: Any, value: Any) -> None:
    assert (await judge("reward", "", reward=reward)).value == value


LONG = "A long sentence about the river and the town. " * 10


@pytest.mark.parametrize(
    ("target", "text", "reason"),
    [
        ("same", "same.", "'same' is the target."),
        ("old", "new", "Expected 'old', found 'new'."),
        (
            f"{LONG}It ends here",
            f"{LONG}It ended there",
            "Expected …'the river and the town. It ends here', found …'the river and the town. It ended there'.",
        ),
    ],
)
async def test_reason_shows_where_a_long_answer_differs_from_its_target(target: str, text: str, reason: str) -> None:
    assert (await judge("exact_match", text, target=target)).reason == reason


@pytest.mark.parametrize(
    ("target", "found", "reason"),
    [
        ({"a": 1, "b": [1, None]}, '{"b": [1, false], "a": 1.0}', "At $.b[1]: expected null, found false."),
        ({"a": 1}, '{"a": "1"}', 'At $.a: expected 1, found "1".'),
        ({"a": 0.5}, '{"a": 0.25}', "At $.a: expected 0.5, found 0.25."),
        ({"a": 1, "b": 2}, '{"a": 1}', "At $: the key 'b' is missing."),
        ({"a": 1}, '{"a": 1, "b": 2}', "At $: the key 'b' is not expected."),
        ({"a": [1, 2]}, '{"a": [1]}', "At $.a: expected 2 items, found 1."),
        ({"a": {"x": 1}}, '{"a": [1]}', 'At $.a: expected {"x": 1}, found [1].'),
        (
            [f"{LONG}1"],
            f'["{LONG}2"]',
            "At $[0]: expected …'about the river and the town. 1', found …'about the river and the town. 2'.",
        ),
    ],
)
async def test_reason_names_the_place_where_json_differs_from_its_target(target: Any, found: str, reason: str) -> None:
    verdict = await judge("json_schema", found, schema={}, target=target)
    assert (verdict.value, verdict.reason) == (0.0, reason)
