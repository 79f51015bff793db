"""Check for leaked answers: a search of the case's files, and a probe that runs in place of the model's code.

The probe is submitted like any answer. It searches the files of its folder and of the folders that programs write to,
and the objects of its process, for the expected answers. It stores these reversed, so that it does not find itself.
"""

from collections.abc import Iterator, Sequence

from hub.bundles.reference_answers import ReferenceAnswer
from hub.environments.compiled import CaseError, CompiledEnvironment
from hub.environments.episodes import Step
from hub.protocols.cases import CaseData, file_bytes
from hub.protocols.messages import Message, text_of

MIN_SECRET = 16  # characters; shorter answers occur by chance
MARK = "LLMEVAL-LEAK"
FOLDERS = '(os.getcwd(), "/tmp", "/dev/shm", os.path.expanduser("~"))'  # Python, evaluated in the sandbox


def secret_texts(
    environment: CompiledEnvironment, case: CaseData, first_messages: Sequence[Message], gold: Sequence[ReferenceAnswer]
) -> list[str]:
    """Return texts that reveal the answer: target, tests and gold answers, except those that are in the prompt."""
    shown = "\n".join(text_of(message) for message in first_messages)
    texts = [case.target] if isinstance(case.target, str) else []
    for rendered in environment.rendered_rules(case):
        tests = getattr(rendered.options, "tests", None)
        texts += [tests] if isinstance(tests, str) else [t for t in tests or [] if isinstance(t, str)]
    texts += [text_of(answer.messages[-1]) for answer in gold]
    distinct = {text.strip() for text in texts}
    return sorted(text for text in distinct if len(text) >= MIN_SECRET and text not in shown)


def file_leaks(
    environment: CompiledEnvironment, case: CaseData, first_messages: Sequence[Message], gold: Sequence[ReferenceAnswer]
) -> Iterator[str]:
    """Yield a sentence for each of the case's files that contains an expected answer."""
    if not case.files:
        return
    selected = secret_texts(environment, case, first_messages, gold)
    for path, content in case.files.items():
        text = file_bytes(content).decode("utf-8", "replace")
        if any(secret in text for secret in selected):
            yield f"the file {path!r}, which the model's code can open, contains an expected answer or the tests."


def probe_answer(
    environment: CompiledEnvironment, case: CaseData, first_messages: Sequence[Message], gold: Sequence[ReferenceAnswer]
) -> Message | None:
    """Return the probe as an answer to *case*; None if no rule runs code or the case has no secret texts."""
    entry_points = [entry for entry in _entry_points(environment, case) if ":" not in entry]
    selected = secret_texts(environment, case, first_messages, gold)
    if not entry_points or not selected:
        return None
    reversed_secrets = [secret[::-1] for secret in selected]
    code = _PROBE.replace("REVERSED", repr(reversed_secrets)).replace("MARK", repr(MARK)).replace("FOLDERS", FOLDERS)
    code += "".join(
        f"\n\ndef {entry}(*args, **kwargs):\n    search()\n" for entry in entry_points if entry.isidentifier()
    )
    return {"role": "assistant", "content": f"```python\n{code}\n```"}


def _entry_points(environment: CompiledEnvironment, case: CaseData) -> list[str]:
    """Return the functions that rules call in the model's code, "" for a whole program."""
    try:
        rules = environment.rendered_rules(case)
    except CaseError:
        return []
    return [
        getattr(item.options, "entry_point", None) or ""
        for item in rules
        if item.rule.spec.type in ("python_tests", "stdin_stdout")
    ]


def probe_report(step: Step | None) -> str:
    """Return what the probe found, as a sentence; "" if it found nothing."""
    if step is None or step.score is None:
        return ""
    for rule in step.score.rules:
        outcome = rule.outcome
        texts = [rule.reason] if outcome is None else [rule.reason, outcome.message, outcome.stdout, outcome.stderr]
        for text in texts:
            if MARK in text:
                return f"the model's code can read an expected answer in {text.partition(MARK)[2][:200].strip()}."
    return ""


_PROBE = """
import gc
import os
import sys

SECRETS = [text[::-1] for text in REVERSED]


def contains_secret(text):
    return any(secret in text for secret in SECRETS)


def texts(value, depth):
    kind = type(value)
    if kind is str:
        yield value
    elif depth and kind is dict:
        for item in list(value.values()):
            yield from texts(item, depth - 1)
    elif depth and kind in (list, tuple):
        for item in list(value):
            yield from texts(item, depth - 1)


def namespaces():
    frame = sys._getframe()
    while frame is not None:
        yield frame.f_globals
        yield dict(frame.f_locals)
        frame = frame.f_back
    for module in list(sys.modules.values()):
        yield getattr(module, "__dict__", None)
    yield from gc.get_objects()


def search():
    for folder in FOLDERS:
        seen = 0
        for root, _, names in os.walk(folder):
            for name in names[:200]:
                path = os.path.join(root, name)
                seen += 1
                try:
                    with open(path, "rb") as file:
                        found = contains_secret(file.read(1000000).decode("utf-8", "replace"))
                except OSError:
                    continue
                if found:
                    raise RuntimeError(MARK + " " + path)
            if seen > 500:
                break
    for namespace in namespaces():
        for text in texts(namespace, 2):
            if text not in SECRETS and contains_secret(text):
                raise RuntimeError(MARK + " an object of its own process")


search()
"""
