"""Compiled environments: a manifest with its harness, scorers and code files."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hub.common import digests, wording
from hub.common.documents import validation, yaml_source
from hub.common.problems import Problem
from hub.harnesses.base import EpisodeContext, Harness, HarnessOptions, Services
from hub.harnesses.registry import HARNESSES
from hub.manifest.schema import Manifest, RuleSpec
from hub.protocols.calls import CallKey
from hub.protocols.cases import CaseData
from hub.protocols.messages import JSON, Tool
from hub.scorers.base import Scorer, ScorerOptions
from hub.scorers.registry import SCORERS
from hub.templating import templates
from sandbox.client.pool import Pool

ModelT = TypeVar("ModelT", bound=BaseModel)


class CompileError(ValueError):
    """Manifest that cannot be compiled. `problems` lists every mistake."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


class CaseError(ValueError):
    """Case whose templates do not render or whose options are invalid. `where` is a key path of the manifest.

    in_manifest: whether the mistake is a fixed value of the manifest, which is wrong for every case.
    """

    def __init__(self, where: str, message: str, *, in_manifest: bool = False) -> None:
        super().__init__(f"{where}: {message}")
        self.where = where
        self.message = message
        self.in_manifest = in_manifest


@dataclass(frozen=True, slots=True)
class Rule:
    """Scoring rule with its scorer. `where` is its key path in environment.yaml."""

    spec: RuleSpec
    scorer: Scorer[ScorerOptions]
    where: str


@dataclass(frozen=True, slots=True)
class RenderedRule:
    """Scoring rule with its options, rendered for one case."""

    rule: Rule
    options: ScorerOptions


class CompiledEnvironment:
    """Environment that runs episodes. Read-only after construction, so tasks can share it."""

    def __init__(self, manifest: Manifest, files: Mapping[str, bytes], paths: Collection[str] = ()) -> None:
        """files: the code files of the bundle, by path. paths: all its files, of which messages suggest similar ones.

        Raises CompileError with every problem.
        """
        self.manifest = manifest
        self.files = files
        problems = list(_problems(manifest, files, paths or files))
        if problems:
            raise CompileError(problems)
        self.harness: Harness[HarnessOptions] = HARNESSES[manifest.harness.type]
        self.rules = [
            Rule(spec, SCORERS[spec.type], f"scoring.rules[{i}]") for i, spec in enumerate(manifest.scoring.rules)
        ]

    @property
    def slug(self) -> str:
        return self.manifest.slug

    @property
    def needs_sandbox(self) -> bool:
        harness_needs = self.harness.uses_sandbox(self.manifest.harness.options)
        return harness_needs or any(rule.scorer.needs == "sandbox" for rule in self.rules)

    def pool(self, pool: Pool | None) -> Pool | None:
        """Return *pool* with the packages of the manifest. Raises SandboxUnavailable if one is missing."""
        return pool.with_packages(self.manifest.packages) if pool is not None and self.needs_sandbox else pool

    def check_available(self) -> None:
        """Raise SandboxUnavailable if what the harness needs, besides the sandbox, is missing on this machine."""
        self.harness.check_available(self.manifest.harness.options, self.files, self.manifest.packages)

    @cached_property
    def roles(self) -> list[str]:
        """Return the roles of models that a run must provide: simulated users, rubric judges."""
        named = self.harness.roles(self.manifest.harness.options)
        for rule in self.rules:
            named = named + rule.scorer.roles(rule.spec.options)
        return sorted(set(named))

    @cached_property
    def forgeable_rules(self) -> list[str]:
        """Return the names of the rules whose tests share a process with what the model wrote, which can forge them."""
        options = [(rule, rule.spec.options) for rule in self.rules]
        return [rule.spec.name for rule, raw in options if rule.scorer.shares_process(raw, self.files)]

    # ---- rendering for a case ----------------------------------------------------------------------------------------

    def harness_options(self, case: CaseData) -> HarnessOptions:
        """Return the options of the harness for *case*. Raises CaseError."""
        return _options(self.harness.Options, self.manifest.harness.options, case.variables(), "harness")

    def rendered(self, case: CaseData) -> "RenderedCase":
        """Return *case* with the options of the harness and the rules that apply to it. Raises CaseError."""
        return RenderedCase(self, case, self.harness_options(case), self.rendered_rules(case))

    def rendered_rules(self, case: CaseData) -> list[RenderedRule]:
        """Return the rules that apply to *case* (`when`), rendered. Raises CaseError."""
        variables = case.variables()
        rendered = []
        for rule in self.rules:
            try:
                applies = templates.render(rule.spec.when, variables)
            except templates.RenderError as error:
                raise CaseError(f"{rule.where}.when", str(error)) from None
            if templates.truth(applies):
                rendered.append(
                    RenderedRule(rule, _options(rule.scorer.Options, rule.spec.options, variables, rule.where))
                )
        return rendered

    def tools_of(self, case: CaseData) -> list[Tool] | None:
        """Return the tools that a model is offered in *case*; None if the harness decides during the episode.

        Raises CaseError, HarnessError.
        """
        key = CallKey(purpose="answer", environment=self.slug, case=case.id)
        options = self.harness_options(case)
        context = EpisodeContext(case=case, key=key, seed=0, options=options, files=self.files, services=Services())
        return self.harness.static_tools(context)

    def code_hashes(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the SHA-256 of each file that *paths* name as code."""
        named = set(paths)
        selected = [path for path in self.files if is_code(path, named)]
        return {path: hashlib.sha256(self.files[path]).hexdigest() for path in selected}


@dataclass(frozen=True, slots=True)
class RenderedCase:
    """Case with the options of its harness and its rules, rendered once for its checks and its digests."""

    environment: CompiledEnvironment
    case: CaseData
    options: HarnessOptions
    rules: list[RenderedRule]

    def check(self) -> None:
        """Raise CaseError if options do not fit the case, such as tools or scripts that do not exist."""
        environment = self.environment
        found = [("harness", environment.harness.case_problems(self.options, environment.files))]
        for item in self.rules:
            found.append((item.rule.where, item.rule.scorer.case_problems(item.options, environment.files)))
        for where, problems in found:
            for problem in problems:
                raise CaseError(f"{where}.{problem.path}", f"case {self.case.id!r}: {problem.message}")

    def input_digest(self) -> str:
        """Return the SHA-256 of the rendered prompt, the tools, files, the harness and its code. Raises CaseError."""
        environment = self.environment
        code = environment.harness.code_paths(environment.manifest.harness.options)
        return digests.digest(
            {
                "harness": environment.harness.type,
                "options": _as_json(self.options, "harness"),
                "files": self.case.files,
                "code": environment.code_hashes(code),
                "case": self.case.to_json() if code else None,  # the code of a harness may read any column
            }
        )

    def scoring_digest(self) -> str:
        """Return the SHA-256 of the rendered rules, target, tests, pass mark and rules' code. Raises CaseError."""
        manifest = self.environment.manifest
        rules: list[JSON] = []
        reads_case = False
        for item in self.rules:
            spec = item.rule.spec
            code = item.rule.scorer.code_paths(spec.options)
            reads_case = reads_case or bool(code)
            rules.append(
                {
                    "type": spec.type,
                    "name": spec.name,
                    "weight": spec.weight,
                    "required": spec.required,
                    "options": _as_json(item.options, item.rule.where),
                    "code": self.environment.code_hashes(code),
                }
            )
        # An empty list is left out, so that digests of environments stored before `packages` existed stay the same.
        packages = {"packages": list(manifest.packages)} if manifest.packages else {}
        case_json = self.case.to_json() if reads_case else None
        return digests.digest({"pass": manifest.scoring.pass_mark, "rules": rules, "case": case_json, **packages})


def _as_json(options: BaseModel, where: str) -> JSON:
    """Return *options* as JSON. Raises CaseError, for example if lists are nested too deeply."""
    try:
        values: JSON = options.model_dump(mode="json")
    except ValueError as error:
        raise CaseError(where, f"the options cannot be written as JSON: {error}") from None
    return values


def is_code(path: str, named: Collection[str]) -> bool:
    """Return whether *path* is among the files and folders *named* as code."""
    return path in named or any(name.endswith("/") and path.startswith(name) for name in named)


def code_paths(manifest: Manifest) -> set[str]:
    """Return the files and folders of the bundle that the harness and the rules name as code; see `is_code`."""
    paths: set[str] = set()
    if manifest.harness.type in HARNESSES:
        paths.update(HARNESSES[manifest.harness.type].code_paths(manifest.harness.options))
    for spec in manifest.scoring.rules:
        if spec.type in SCORERS:
            paths.update(SCORERS[spec.type].code_paths(spec.options))
    return paths


def _options(model: type[ModelT], raw: Mapping[str, object], variables: Mapping[str, object], where: str) -> ModelT:
    given = {**_templates(model), **raw}
    try:
        rendered = templates.render(given, variables)
    except templates.RenderError as error:
        raise CaseError(where, str(error)) from None
    try:
        return model.model_validate(rendered)
    except ValidationError as error:
        item = _most_specific(error.errors(), rendered)
        location = validation.location_in(rendered, item)
        if location:
            fixed = location[0] in raw and not templates.has_template(raw[str(location[0])])
        else:  # options that contradict each other
            fixed = not any(map(templates.has_template, given.values()))
        path = yaml_source.dotted((where, *location))
        raise CaseError(path, validation.describe_error(item, model), in_manifest=fixed) from None


def _most_specific(errors: Sequence[ErrorDetails], value: object) -> ErrorDetails:
    """Return the deepest error of the first wrong option. Of a union, this is the error of the type that is meant.

    A misspelt key comes before the required key that is missing because of it.
    """
    option = errors[0]["loc"][:1]
    return max(
        (item for item in errors if item["loc"][:1] == option),
        key=lambda item: (len(validation.location_in(value, item)), item["type"] == "extra_forbidden"),
    )


@lru_cache(maxsize=256)
def _templates(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the defaults of *model* that are templates, such as a prompt with the input of the case."""
    defaults = {name: field.default for name, field in model.model_fields.items()}
    return {name: value for name, value in defaults.items() if isinstance(value, str) and "{{" in value}


def _problems(manifest: Manifest, files: Mapping[str, bytes], known: Collection[str]) -> Iterable[Problem]:
    """Yield problems that need no case: unknown types and options, templates that do not compile, missing code."""
    harness = HARNESSES.get(manifest.harness.type)
    if harness is None:
        yield Problem(HARNESSES.describe_unknown(manifest.harness.type), "harness.type")
    else:
        options = manifest.harness.options
        yield from _option_problems("harness", harness.Options, options)
        missing = list(_missing("harness", harness.code_paths(options), files, known))
        yield from missing
        if not missing:
            yield from (
                _with_prefix("harness", problem) for problem in harness.problems(options, files, manifest.packages)
            )
    for i, spec in enumerate(manifest.scoring.rules):
        where = f"scoring.rules[{i}]"
        scorer = SCORERS.get(spec.type)
        if scorer is None:
            yield Problem(SCORERS.describe_unknown(spec.type), f"{where}.type")
            continue
        if scorer.harness and manifest.harness.type != scorer.harness:
            yield Problem(
                f"the rule {spec.type} scores episodes of the harness {scorer.harness}, "
                f"and the harness is {manifest.harness.type}",
                f"{where}.type",
            )
        for problem in templates.check(spec.when):
            yield Problem(problem, f"{where}.when")
        yield from _option_problems(where, scorer.Options, spec.options)
        missing = list(_missing(where, scorer.code_paths(spec.options), files, known))
        yield from missing
        if not missing:
            yield from (_with_prefix(where, problem) for problem in scorer.problems(spec.options, files))


def _with_prefix(where: str, problem: Problem) -> Problem:
    return replace(problem, path=f"{where}.{problem.path}")


def _option_problems(where: str, model: type[BaseModel], options: Mapping[str, object]) -> Iterable[Problem]:
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    for key, value in options.items():
        if key not in known:
            yield Problem(wording.unknown_key(key, sorted(known)), f"{where}.{key}")
        for problem in templates.check(value):
            yield Problem(problem, f"{where}.{key}")
    for name, field in known.items():
        if field.is_required() and name not in options:
            yield Problem("missing; this key is required", f"{where}.{name}")


def _missing(where: str, paths: Iterable[str], files: Mapping[str, bytes], known: Collection[str]) -> Iterable[Problem]:
    for path in paths:
        if path.endswith("/") and not any(is_code(file, [path]) for file in files):
            yield Problem(f"the bundle has no files in the folder {path!r}", where)
        elif not path.endswith("/") and path not in files:
            similar = wording.find_similar_file(path, known)
            remedy = f"Did you mean {similar!r}?" if similar else ""
            yield Problem(f"the bundle has no file {path!r}", where, remedy=remedy)
