"""Compilation of a manifest: problems, rendered options and rules, digests."""

import pytest

from hub.environments.compiled import CaseError, CompiledEnvironment, CompileError
from hub.manifest.schema import Manifest
from hub.protocols.cases import CaseData
from tests.hub.bundle_files import MANIFEST


def compiled(files=None, **changes):
    return CompiledEnvironment(Manifest.model_validate({**MANIFEST, **changes}), files or {})


def case(**changes):
    return CaseData(**{"id": "c", "input": "Where?", "target": "Oslo", "row": {"level": "easy"}, **changes})


def test_unknown_types_keys_and_missing_code_are_all_reported_with_their_key_paths():
    rules = [{"type": "nothing"}, {"type": "exact_match", "name": "b", "wat": 1, "when": "{{ x"}]
    with pytest.raises(CompileError) as caught:
        compiled(harness={"type": "tools", "tools": "tools.py", "colour": 1}, scoring={"rules": rules})
    messages = {problem.path: problem.message for problem in caught.value.problems}
    assert {
        "harness.colour",
        "harness",
        "scoring.rules[0].type",
        "scoring.rules[1].wat",
        "scoring.rules[1].when",
    } <= set(messages)
    assert "'tools.py'" in messages["harness"]


def test_options_are_rendered_for_the_case_and_keep_their_types():
    environment = compiled(
        harness={"prompt": "{{ input }} ({{ level }})"}, scoring={"rules": [{"type": "exact_match"}]}
    )
    assert environment.harness_options(case()).prompt == "Where? (easy)"
    (rule,) = environment.rendered_rules(case(target="Oslo"))
    assert rule.options.target == "Oslo"


def test_rule_applies_if_its_condition_is_true():
    rules = [
        {"type": "exact_match", "name": "a"},
        {"type": "exact_match", "name": "b", "when": "{{ level == 'hard' }}"},
    ]
    environment = compiled(scoring={"rules": rules})
    assert [item.rule.spec.name for item in environment.rendered_rules(case())] == ["a"]
    assert [item.rule.spec.name for item in environment.rendered_rules(case(row={"level": "hard"}))] == ["a", "b"]


def test_template_error_of_a_case_contains_the_key():
    with pytest.raises(CaseError) as caught:
        compiled(harness={"prompt": "{{ nothing }}"}).harness_options(case())
    assert caught.value.where == "harness"
    with pytest.raises(CaseError) as caught:
        compiled(harness={"prompt": "{{ target }}"}).harness_options(case(target=7))
    assert caught.value.where.startswith("harness.prompt")


@pytest.mark.parametrize(
    ("tools", "where"),
    [(["move", "count"], "harness.tools[0]"), (5, "harness.tools"), ([{"a": 1}, 7], "harness.tools[1]")],
)
def test_option_of_several_types_is_described_by_the_type_that_is_meant(tools, where):
    with pytest.raises(CaseError) as caught:
        compiled(harness={"type": "tools", "tools": tools}).harness_options(case())
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("rule", "where", "said"),
    [
        (
            {"type": "stdin_stdout", "cases": [{"stdin": "1", "stdou": "2"}]},
            "scoring.rules[0].cases[0].stdou",
            "did you mean 'stdout'",
        ),
        (
            {"type": "judge", "criteria": [{"name": "right", "txt": "Is it right?"}]},
            "scoring.rules[0].criteria[0].txt",
            "did you mean 'text'",
        ),
    ],
)
def test_misspelt_key_is_reported_rather_than_the_key_that_is_missing(rule, where, said):
    with pytest.raises(CaseError) as caught:
        compiled(scoring={"rules": [rule]}).rendered(case()).scoring_digest()
    assert caught.value.where == where
    assert said in str(caught.value)


def test_input_digest_depends_only_on_the_input_of_the_model():
    environment = compiled()
    digest = environment.rendered(case()).input_digest()
    assert environment.rendered(case(target="Bergen", row={"level": "hard"})).input_digest() == digest
    assert environment.rendered(case(input="Who?")).input_digest() != digest
    assert environment.rendered(case(files={"a.txt": "x"})).input_digest() != digest
    assert compiled(harness={"system": "Be brief."}).rendered(case()).input_digest() != digest
    scoring = {"pass": 0.5, "rules": [{"type": "exact_match"}]}
    assert (
        compiled(title="Other", scoring=scoring).rendered(case()).input_digest()
        == compiled().rendered(case()).input_digest()
    )


def test_options_that_are_nested_too_deeply_are_an_error_of_the_case():
    nested: object = 1
    for _ in range(400):
        nested = [nested]
    scoring = {
        "rules": [{"type": "python_tests", "entry_point": "f", "tests": [{"args": [1], "expect": "{{ target }}"}]}]
    }
    with pytest.raises(CaseError) as caught:
        compiled(scoring=scoring).rendered(case(target=nested)).scoring_digest()
    assert caught.value.where == "scoring.rules[0]"
    assert "the options cannot be written as JSON" in str(caught.value)


def test_scoring_digest_depends_only_on_scoring():
    rules = {"rules": [{"type": "exact_match"}]}
    digest = compiled(scoring=rules).rendered(case()).scoring_digest()
    assert compiled(scoring=rules, harness={"system": "x"}).rendered(case()).scoring_digest() == digest
    assert compiled(scoring=rules).rendered(case(target="Bergen")).scoring_digest() != digest
    assert compiled(scoring={**rules, "pass": 0.5}).rendered(case()).scoring_digest() != digest
    heavier = {"rules": [{"type": "exact_match", "weight": 2}]}
    assert compiled(scoring=heavier).rendered(case()).scoring_digest() != digest


TOOLS = b'def look(state, name: str) -> str:\n    """Look up a name."""\n    return name\n'


def test_input_digest_covers_harness_code_and_case():
    harness = {"type": "tools", "tools": "tools.py"}
    environment = compiled({"tools.py": TOOLS}, harness=harness)
    digest = environment.rendered(case()).input_digest()
    assert compiled({"tools.py": TOOLS + b"# changed\n"}, harness=harness).rendered(case()).input_digest() != digest
    assert environment.rendered(case(row={"level": "hard"})).input_digest() != digest
    assert (
        compiled({"tools.py": TOOLS, "unused.py": b"x = 1\n"}, harness=harness).rendered(case()).input_digest()
        == digest
    )


def test_environment_reports_whether_it_needs_a_sandbox():
    assert not compiled().needs_sandbox
    assert compiled({"tools.py": TOOLS}, harness={"type": "tools", "tools": "tools.py"}).needs_sandbox


def test_roles_are_listed_once():
    user = {"role": "customer", "prompt": "You are a customer."}
    assert compiled(harness={"type": "multi_turn", "user": user}).roles == ["customer"]
    assert compiled().roles == []
