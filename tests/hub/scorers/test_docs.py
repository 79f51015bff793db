"""docs/scorers.md: its examples are valid rules, and its tables list every rule, option and instruction."""

import re

import pytest
import yaml
from django.conf import settings

from hub.scorers.comparison.expected_calls import expected
from hub.scorers.constraints.registry import CONSTRAINTS
from hub.scorers.registry import SCORERS
from hub.templating.templates import is_template

PAGE = (settings.BASE_DIR / "docs" / "scorers.md").read_text(encoding="utf-8")
EXAMPLES = [rule for text in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S) for rule in yaml.safe_load(text)]


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
def test_every_rule_and_option_is_documented_in_a_table(scorer) -> None:
    assert f"[`{scorer.type}`](#{scorer.type})" in PAGE
    section = PAGE.partition(f"\n## {scorer.type}\n")[2].partition("\n## ")[0]
    assert {field.alias or name for name, field in scorer.Options.model_fields.items()} <= set(
        re.findall(r"`(\w+)`", section)
    )


def test_every_example_is_a_rule_that_validates() -> None:
    assert {rule["type"] for rule in EXAMPLES} == set(SCORERS) - {"reward"}
    for rule in EXAMPLES:
        options = {key: value for key, value in rule.items() if key != "type"}
        assert not set(options) - {f.alias or n for n, f in SCORERS[rule["type"]].Options.model_fields.items()}
        if not any(isinstance(value, str) and is_template(value) for value in options.values()):
            SCORERS[rule["type"]].Options.model_validate(options)


def test_every_notation_of_expected_calls_is_documented() -> None:
    (rule,) = (rule for rule in EXAMPLES if rule["type"] == "tool_calls")
    assert len(expected(rule["expect"])) == 2


@pytest.mark.parametrize("kind", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_every_instruction_is_documented_with_its_arguments(kind) -> None:
    row = re.search(rf"^\| `{re.escape(kind.id)}` \|(.*)\|(.*)\|(.*)\|$", PAGE, re.M)
    assert row
    assert re.findall(r"`(\w+)`", row[1]) == list(kind.model_fields)
    assert ("yes" in row[3]) == kind.in_ifeval


def test_documented_number_of_kinds_is_correct() -> None:
    assert f"\nThere are {len(CONSTRAINTS)} kinds. " in PAGE
