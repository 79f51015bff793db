"""Validation of a bundle without running its code: all problems, each with its place and a remedy."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hub.bundles.cases import PreparedCase, prepared_cases
from hub.bundles.loader import README, Bundle, open_bundle
from hub.bundles.reference_answers import RecordedCalls, ReferenceAnswers
from hub.common import wording
from hub.common.problems import Problem
from hub.datasets.disk_index import DiskIndex
from hub.datasets.row_types import unstorable_text
from hub.environments.compiled import CompiledEnvironment
from hub.manifest.problems import MANIFEST, BundleError, ProblemList
from hub.manifest.schema import Answers, Manifest
from hub.protocols.cases import case_split
from hub.templating import templates


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Result of validation. `slug`, `version` and `digest` are empty if they could not be read."""

    problems: list[Problem] = field(default_factory=list)
    slug: str = ""
    version: str = ""
    digest: str = ""
    cases: int = 0

    @property
    def valid(self) -> bool:
        return not self.problems


def validate(path: str | Path) -> Report:
    """Validate the bundle at *path*. Problems of its content are returned, not raised."""
    try:
        bundle = open_bundle(path)
    except BundleError as error:
        return Report(problems=error.problems)
    with bundle:
        return validate_bundle(bundle)


def validate_bundle(bundle: Bundle) -> Report:
    """Validate an open bundle."""
    count = 0

    def count_case(_: PreparedCase) -> None:
        nonlocal count
        count += 1

    problems = bundle_problems(bundle, on_case=count_case)
    try:
        slug, version = bundle.manifest.slug, bundle.manifest.version
    except BundleError:
        slug = version = ""
    return Report(problems=problems, slug=slug, version=version, digest=bundle.digest, cases=count)


def bundle_problems(bundle: Bundle, *, on_case: Callable[[PreparedCase], object]) -> list[Problem]:
    """Return every problem of the bundle, by file and line; call *on_case* for each valid case, in order."""
    problems = ProblemList()
    manifest: Manifest | None = None
    environment: CompiledEnvironment | None = None
    try:
        manifest = bundle.manifest
    except BundleError as error:
        problems.add(*error.problems)
        manifest = bundle.valid_part() if bundle.readable else None
    if manifest is None:
        return problems.sorted()
    try:
        environment = bundle.compile(manifest)
    except BundleError as error:
        problems.add(*error.problems)
    missing, broken = list(_missing_files(bundle, manifest)), list(_bad_templates(bundle, manifest))
    problems.add(*missing, *broken, *_readme_problems(bundle))
    manifest = manifest.model_copy(deep=True)
    for problem in broken:
        manifest.dataset.fields.pop(problem.path.rpartition(".")[2], None)  # reported once, not for every row
    answer_templates = [
        ReferenceAnswers(source, key, bundle.file)
        for key in ("gold", "wrong")
        if isinstance(source := getattr(manifest, key), Answers) and not any(item.path == key for item in broken)
    ]
    splits: set[str] = set()
    complete = True  # whether the ids of all cases are known
    with DiskIndex() as ids:
        if not any(problem.path.startswith("dataset") for problem in missing):
            for found in prepared_cases(manifest, environment, bundle.file, null_ids=False):
                if isinstance(found, Problem):
                    problems.add(bundle.with_line(found) if found.file == MANIFEST and found.path else found)
                    complete = False
                else:
                    ids.add(found.case.id, "")
                    if manifest.held_out_splits:
                        splits.add(case_split(found.case.to_json()))
                    problems.add(*_template_problems(answer_templates, found))
                    on_case(found)
                if problems.full:
                    return problems.sorted()
            problems.add(*_answer_problems(bundle, manifest, ids if complete else None))
            problems.add(*_unknown_splits(bundle, manifest, splits))
    return problems.sorted()


def _template_problems(answer_templates: list[ReferenceAnswers], found: PreparedCase) -> Iterator[Problem]:
    """Yield problems of gold and wrong answers that templates cannot render for a case."""
    for answers in answer_templates:
        if message := answers.problem(found.case):
            yield Problem(file=found.file, line=found.line, path=answers.key, message=message)


def _unknown_splits(bundle: Bundle, manifest: Manifest, splits: set[str]) -> Iterator[Problem]:
    known = ", ".join(sorted(repr(split) for split in splits if split)) or "none: add a column `split` to the rows"
    for index, split in enumerate(manifest.held_out_splits):
        if split not in splits:
            yield bundle.problem(
                ["held_out_splits", index], f"no case has the split {split!r}", f"The splits of the cases are {known}."
            )


def _readme_problems(bundle: Bundle) -> Iterator[Problem]:
    try:
        what, remedy = unstorable_text(bundle.readme)
    except BundleError as error:
        yield from error.problems
    else:
        if what:
            yield Problem(file=README, message=f"the file contains {what}.", remedy=remedy)


def _missing_files(bundle: Bundle, manifest: Manifest) -> Iterator[Problem]:
    join = manifest.dataset.join
    named: list[tuple[list[str | int], object]] = [
        (["dataset", "path"], manifest.dataset.path),
        (["dataset", "join", "path"], join.path if join else None),
        (["gold"], manifest.gold),
        (["wrong"], manifest.wrong),
        (["recordings"], manifest.recordings),
    ]
    for key, path in named:
        if isinstance(path, str) and path not in bundle.files:
            similar = wording.find_similar_file(path, bundle.files)
            remedy = f"Did you mean {similar!r}?" if similar else "Add the file, or remove the key."
            yield bundle.problem(key, f"the bundle has no file {path!r}", remedy)


def _bad_templates(bundle: Bundle, manifest: Manifest) -> Iterator[Problem]:
    for message in templates.check(manifest.dataset.where or ""):
        yield bundle.problem(["dataset", "where"], message)
    for name, value in manifest.dataset.fields.items():
        for message in templates.check(value):
            yield bundle.problem(["dataset", "fields", name], message)
    for key in ("gold", "wrong"):
        answers = getattr(manifest, key)
        if isinstance(answers, Answers):
            for message in templates.check([answers.content or "", answers.messages or "", answers.script or ""]):
                yield bundle.problem([key], message)


_NO_CASE = "`case` is missing: the id of the case to which the recording belongs."


def _answer_problems(bundle: Bundle, manifest: Manifest, ids: DiskIndex | None) -> Iterator[Problem]:
    """Yield problems of answer files that cannot be read or that name cases which are not in *ids*, if it is given."""
    for key in ("gold", "wrong"):
        source = getattr(manifest, key)
        if not isinstance(source, str) or source not in bundle.files:
            continue
        try:
            with ReferenceAnswers(source, key, bundle.file) as answers:
                for case in answers.cases():
                    if ids is not None and ids.get(case) is None:
                        message = f"an answer names the case {case!r}, which does not exist."
                        yield Problem(file=source, line=answers.line(case), message=message)
        except BundleError as error:
            yield from error.problems
    if manifest.recordings in bundle.files:
        try:
            recorded = RecordedCalls.read(manifest.recordings or "", bundle.file)
        except BundleError as error:
            yield from error.problems
            return
        for case, line in recorded.first_lines.items():
            if ids is not None and ids.get(case) is None:
                message = f"a recording names the case {case!r}, which does not exist." if case else _NO_CASE
                yield Problem(file=manifest.recordings or "", line=line, message=message)
        for line, earlier in recorded.replaced.items():
            message = f"line {earlier} has another reply to the same call."
            remedy = "Keep one of the two lines."
            yield Problem(file=manifest.recordings or "", line=line, message=message, remedy=remedy)
