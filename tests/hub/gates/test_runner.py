"""Gates: each finds its kind of mistake, and reports `not_run` if it has nothing to check."""

import base64
import json
import re

import pytest

from hub.bundles.loader import open_bundle
from hub.bundles.validation import validate
from hub.gates import runner
from hub.gates.runner import run_gates
from hub.harnesses.registry import HARNESSES
from hub.harnesses.single_turn import SingleTurn
from hub.manifest.problems import BundleError
from hub.protocols.calls import CallKey
from hub.scorers.base import Scorer, ScorerOptions, Verdict
from hub.scorers.registry import SCORERS
from tests.hub.bundle_files import ROWS, WRONG, lines, write_bundle


def run(folder, **options):
    with open_bundle(folder) as bundle:
        certificate = run_gates(bundle, pool=None, **options)
    return certificate, {gate["name"]: gate for gate in certificate["gates"]}


def test_valid_bundle_passes_every_gate_and_certificate_has_its_digest(tmp_path):
    certificate, found = run(write_bundle(tmp_path))
    assert {name: gate["status"] for name, gate in found.items()} == dict.fromkeys(found, "passed")
    assert (found["gold"]["checked"], found["wrong"]["checked"], found["empty"]["checked"]) == (3, 3, 3)
    assert found["repeat"]["checked"] == 9
    with open_bundle(tmp_path) as bundle:
        assert certificate["digest"] == bundle.digest
    assert json.loads(json.dumps(certificate)) == certificate


def test_failing_gold_answer_is_reported_with_its_reason(tmp_path):
    _, found = run(write_bundle(tmp_path, gold={"content": "{{ 'Paris' }}"}))
    assert (found["gold"]["status"], found["gold"]["failed"]) == ("failed", 2)
    assert {failure["case"] for failure in found["gold"]["failures"]} == {"Spain", "Norway"}
    assert "failed" in found["gold"]["failures"][0]["message"]


def test_passing_wrong_answer_is_reported_with_its_explanation(tmp_path):
    wrong = [*WRONG, {"case": "Spain", "content": "Madrid", "why": "meant to fail"}]
    _, found = run(write_bundle(tmp_path, files={"wrong.jsonl": lines(wrong)}))
    ((failure),) = found["wrong"]["failures"]
    assert failure["case"] == "Spain"
    assert "wrong answer 2 (meant to fail): passed" in failure["message"]


def test_passing_empty_answer_fails_the_empty_gate(tmp_path):
    rows = [*ROWS, {"country": "Nowhere", "capital": "-"}]
    rule = {"type": "regex", "pattern": "(?s)^$|.+", "target": None}
    scoring = {
        "rules": [{**rule, "when": "{{ capital == '-' }}"}, {"type": "exact_match", "when": "{{ capital != '-' }}"}]
    }
    _, found = run(write_bundle(tmp_path, files={"cases.jsonl": lines(rows)}, scoring=scoring))
    assert [failure["case"] for failure in found["empty"]["failures"]] == ["Nowhere"]


def test_gates_without_gold_and_wrong_answers_are_not_run_and_have_a_note(tmp_path):
    _, found = run(write_bundle(tmp_path, gold=None, wrong=None))
    assert (found["gold"]["status"], found["wrong"]["status"]) == ("not_run", "not_run")
    assert "no gold answers" in found["gold"]["note"]


def test_nondeterministic_scoring_fails_the_repeat_gate(tmp_path, monkeypatch):
    class Moody(Scorer):
        type = "moody"
        summary = ""
        Options = ScorerOptions
        calls = 0

        async def score(self, options, submission, services):
            Moody.calls += 1
            return Verdict.of(Moody.calls % 2 == 1, "not today")

    monkeypatch.setitem(SCORERS, "moody", Moody())
    _, found = run(write_bundle(tmp_path, scoring={"rules": [{"type": "moody"}]}, wrong=None))
    assert found["repeat"]["status"] == "failed"


def test_case_without_a_first_message_fails(tmp_path):
    _, found = run(write_bundle(tmp_path, harness={"type": "single_turn", "prompt": ""}))
    assert found["renders"]["failed"] == 3
    assert "without a message" in found["renders"]["failures"][0]["message"]
    others = [found[name] for name in ("gold", "wrong", "empty", "repeat", "sealed")]
    assert [(gate["status"], gate["note"]) for gate in others] == [("not_run", "No case renders.")] * 5


@pytest.mark.parametrize("encode", [str, lambda text: {"b64": base64.b64encode(text.encode()).decode()}])
def test_file_with_the_answer_fails_the_sealed_gate(tmp_path, encode):
    note = encode("It is Paris, on the river Seine.")
    rows = [{"country": "France", "capital": "Paris, on the river Seine", "note": note}]
    fields = {"id": "country", "input": "country", "target": "capital", "files": {"notes.txt": "{{ note }}"}}
    folder = write_bundle(
        tmp_path, files={"cases.jsonl": lines(rows)}, dataset={"path": "cases.jsonl", "fields": fields}, wrong=None
    )
    _, found = run(folder)
    assert "'notes.txt'" in found["sealed"]["failures"][0]["message"]


def test_answer_shown_in_the_prompt_is_not_a_leak(tmp_path):
    rows = [
        {"country": "Name one: Paris on Seine, Rome", "capital": "Paris on Seine, Rome", "note": "Paris on Seine, Rome"}
    ]
    fields = {"input": "country", "target": "capital", "files": {"notes.txt": "{{ note }}"}}
    folder = write_bundle(
        tmp_path, files={"cases.jsonl": lines(rows)}, dataset={"path": "cases.jsonl", "fields": fields}, wrong=None
    )
    assert run(folder)[1]["sealed"]["status"] == "passed"


class Asking(Scorer):
    """Passes what a judge answers `yes` to."""

    type = "asking"
    summary = ""
    Options = ScorerOptions

    async def score(self, options, submission, services):
        key = CallKey(
            purpose="rubric",
            environment="e",
            case=submission.case.id,
            model=submission.key.model,
            attempt=submission.key.attempt,
            rule=submission.rule,
        )
        reply = await services.call_model(key, [{"role": "user", "content": submission.text}])
        return Verdict.of(reply.message["content"] == "yes", "the judge said no")


def judged(tmp_path, recordings):
    rule = {"type": "asking", "name": "taste"}
    files = {} if recordings is None else {"judge.jsonl": lines(recordings)}
    named = {} if recordings is None else {"recordings": "judge.jsonl"}
    return write_bundle(tmp_path, scoring={"rules": [rule]}, files=files, **named)


def test_judge_rules_use_the_recordings_of_the_bundle(tmp_path, monkeypatch):
    monkeypatch.setitem(SCORERS, "asking", Asking())
    said = [
        {"purpose": "rubric", "case": row["country"], "rule": "taste", "model": model, "content": word}
        for row in ROWS
        for model, word in (("gold", "yes"), ("wrong", "no"), ("empty", "no"))
    ]
    _, found = run(judged(tmp_path, said))
    assert {name: gate["status"] for name, gate in found.items()} == dict.fromkeys(found, "passed")


def test_gates_without_recordings_are_not_run(tmp_path, monkeypatch):
    monkeypatch.setitem(SCORERS, "asking", Asking())
    _, found = run(judged(tmp_path, None))
    assert [found[name]["status"] for name in ("gold", "wrong", "empty")] == ["not_run"] * 3
    assert re.search(r"no recording of rubric for case '\w+', rule 'taste'\.", found["gold"]["note"])
    assert found["repeat"]["note"] == "No answer could be scored."


def test_recording_of_an_attempt_takes_precedence(tmp_path, monkeypatch):
    monkeypatch.setitem(SCORERS, "asking", Asking())
    said = [{"purpose": "rubric", "case": row["country"], "rule": "taste", "content": "no"} for row in ROWS]
    said += [{**row, "model": "gold", "attempt": 1, "content": "yes"} for row in said]
    _, found = run(judged(tmp_path, said))
    assert {name: gate["status"] for name, gate in found.items()} == dict.fromkeys(found, "passed")


def test_recording_of_an_attempt_needs_no_model(tmp_path, monkeypatch):
    monkeypatch.setitem(SCORERS, "asking", Asking())
    said = [{"purpose": "rubric", "case": row["country"], "rule": "taste", "content": "no"} for row in ROWS]
    said += [{**row, "attempt": 1, "content": "yes"} for row in said]
    _, found = run(judged(tmp_path, said))
    assert (found["gold"]["status"], found["wrong"]["status"]) == ("passed", "failed")


def test_recording_without_content_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setitem(SCORERS, "asking", Asking())
    with pytest.raises(BundleError, match=r"judge\.jsonl:1"):
        run(judged(tmp_path, [{"purpose": "rubric", "case": "France"}]))


def test_large_dataset_is_sampled_evenly_and_noted_in_the_certificate(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "MAX_CASES", 10)
    rows = [{"country": f"C{i}", "capital": "Bern" if i % 10 == 0 else "Rome"} for i in range(100)]
    folder = write_bundle(tmp_path, files={"cases.jsonl": lines(rows)}, wrong=None, gold={"content": "{{ 'Bern' }}"})
    done = []
    certificate, found = run(folder, progress=lambda count, total: done.append((count, total)))
    assert (certificate["cases"], found["gold"]["checked"], found["gold"]["status"]) == (100, 10, "passed")
    assert found["renders"]["note"].startswith("10 of 100 cases")
    assert done[-1] == (10, 10)


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (["Hm."], "case 'Norway': gold answer 1 ended before the episode, which was stopped and scored."),
        (["Hm.", "Oslo"], ""),
        (["Hm.", "Oslo", "Oslo"], "case 'Norway': the episode ended before 1 turn of gold answer 1."),
    ],
)
def test_gold_answer_with_too_many_or_too_few_turns_is_noted(tmp_path, monkeypatch, answer, note):
    monkeypatch.setitem(HARNESSES, "two_turns", TwoTurns())
    gold = lines([{"case": "Norway", "messages": [{"content": text} for text in answer]}])
    folder = write_bundle(
        tmp_path, harness={"type": "two_turns"}, gold="gold.jsonl", files={"gold.jsonl": gold}, wrong=None
    )
    assert run(folder)[1]["gold"]["note"] == note


class TwoTurns(SingleTurn):
    """Harness whose episodes take two answers; the second is scored."""

    type = "two_turns"

    async def reset(self, play):
        turn = await super().reset(play)
        return type(turn)(state=0, messages=turn.messages)

    async def step(self, play, state, message):
        turn = await super().step(play, state, message)
        follow = [{"role": "user", "content": "And now?"}] if state == 0 else []
        return type(turn)(state=state + 1, messages=follow, done=state == 1)


def test_gold_answers_of_several_turns_are_sent_in_order(tmp_path, monkeypatch):
    monkeypatch.setitem(HARNESSES, "two_turns", TwoTurns())
    gold = [{"case": row["country"], "messages": [{"content": "Hm."}, {"content": row["capital"]}]} for row in ROWS]
    folder = write_bundle(
        tmp_path, harness={"type": "two_turns"}, gold="gold.jsonl", files={"gold.jsonl": lines(gold)}, wrong=None
    )
    assert run(folder)[1]["gold"]["status"] == "passed"


NUMBERS = lines([{"question": "3 * 6?", "target": 18}, {"question": "1 / 4?", "target": 0.25}])
SUMS = {
    "dataset": {"path": "cases.jsonl", "fields": {"input": "question"}},
    "scoring": {"rules": [{"type": "number", "target": "{{ target }}"}]},
    "wrong": None,
}


@pytest.mark.parametrize("gold", [{"content": "{{ target }}"}, {"messages": ["{{ target }}"]}], ids=str)
def test_gold_answer_template_may_render_a_number(tmp_path, gold):
    bundle = write_bundle(tmp_path, **SUMS, gold=gold, files={"cases.jsonl": NUMBERS})
    assert validate(bundle).problems == []
    _, found = run(bundle)
    assert (found["gold"]["status"], found["gold"]["checked"]) == ("passed", 2)


def test_answer_file_may_contain_numbers(tmp_path):
    answers = lines([{"case": "1", "content": 18}, {"case": "2", "messages": [{"content": 0.25}]}])
    bundle = write_bundle(tmp_path, **SUMS, gold="gold.jsonl", files={"cases.jsonl": NUMBERS, "gold.jsonl": answers})
    assert validate(bundle).problems == []
    _, found = run(bundle)
    assert (found["gold"]["status"], found["gold"]["checked"]) == ("passed", 2)


@pytest.mark.parametrize(
    ("target", "kind"), [(["a", "b"], "a list"), ({"a": 1}, "an object"), (True, "true or false"), (None, None)]
)
def test_gold_answer_that_is_not_text_is_reported_with_its_row(tmp_path, target, kind):
    rows = lines([{"question": "?", "target": "x"}, {"question": "??", "target": target}])
    rules = {"rules": [{"type": "exact_match", "target": "x"}]}
    changes = {**SUMS, "scoring": rules, "gold": {"content": "{{ target }}"}, "files": {"cases.jsonl": rows}}
    bundle = write_bundle(tmp_path, **changes)
    problems = validate(bundle).problems
    if kind is None:  # a case without a target has no gold answer
        assert problems == []
        return
    (problem,) = problems
    assert (problem.file, problem.line, problem.path) == ("cases.jsonl", 2, "gold")
    assert kind in problem.message
    with pytest.raises(BundleError, match=kind):
        run(bundle)
