"""docs/scorers.md: its examples are rules that hold, and its tables name every rule, option and kind there is."""

import re

import pytest
import yaml
from django.conf import settings

from hub.scorers.constraints.registry import CONSTRAINTS
from hub.scorers.expected_calls import expected
from hub.scorers.registry import SCORERS
from hub.templating.templates import is_template

PAGE = (settings.BASE_DIR / "docs" / "scorers.md").read_text(encoding="utf-8")
EXAMPLES = [rule for text in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S) for rule in yaml.safe_load(text)]


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
def test_a_rule_stands_in_the_first_table_and_its_options_in_its_own(scorer) -> None:
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


def test_every_notation_of_a_call_is_shown() -> None:
    (rule,) = (rule for rule in EXAMPLES if rule["type"] == "tool_calls")
    assert len(expected(rule["expect"])) == 2


@pytest.mark.parametrize("kind", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_a_kind_of_instruction_is_listed_with_its_arguments(kind) -> None:
    row = re.search(rf"^\| `{re.escape(kind.id)}` \|(.*)\|(.*)\|(.*)\|$", PAGE, re.M)
    assert row
    assert re.findall(r"`(\w+)`", row[1]) == list(kind.model_fields)
    assert ("yes" in row[3]) == kind.in_ifeval


def test_documented_number_of_kinds_is_correct() -> None:
    assert f"\n{len(CONSTRAINTS)} kinds. " in PAGE
