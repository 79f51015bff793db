"""Resolves a config: looks up its environments, selects cases and computes digests. Writes nothing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from pydantic import ValidationError

from hub.bundles.checked import CheckedCases
from hub.bundles.loader import open_bundle
from hub.common import digests, wording
from hub.common.documents import yaml_source
from hub.common.errors import NotFound
from hub.common.problems import Problem
from hub.environments.compiled import CompiledEnvironment, CompileError
from hub.manifest.problems import BundleError
from hub.models import EnvironmentVersion, Team
from hub.protocols.messages import JSON
from hub.selectors import VersionNotFound, compile_version, find_by_digest, get_version, list_case_ids
from hub.services import find_version_of_bundle
from hub.teams.choice import TeamError, choose_team
from runs.config.parsed import ConfigError, ParsedConfig
from runs.config.schema import EnvironmentRef, RunConfig
from runs.config_source import ConfigSource
from runs.models import ModelEndpoint
from runs.providers.base import ModelSpec
from runs.providers.registry import PROVIDERS
from runs.stages import stages

_TINY_PRICE = 0.001  # USD per million tokens; the price per token of models is below it, that per million above
_UNPRICED = (
    "has no price, so the budget cannot be kept; add `price: {input: ..., output: ...}`, with 0 if it is free, or "
    "remove `budget_usd`"
)


class UnknownCases(NotFound):
    """An environment does not have the cases that a config selects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedEnvironment:
    """Environment of a config, looked up, and its selected cases.

    count: number of the cases. case_positions: their positions, or None for the first *count*. version: None if the
    environment is a bundle at `path`, which is imported when a run is created. cases: all cases of that bundle; None if
    it is imported already. list_ids: returns the ids of all cases of the environment. cut: `first` has reduced the
    number of cases.
    """

    ref: EnvironmentRef
    compiled: CompiledEnvironment
    digest: str
    count: int
    case_positions: list[int] | None
    list_ids: Callable[[], list[str]]
    version: EnvironmentVersion | None = None
    path: Path | None = None
    cases: CheckedCases | None = None
    cut: bool = False

    @property
    def label(self) -> str:
        """Return slug@version."""
        return f"{self.compiled.slug}@{self.compiled.manifest.version}"

    @property
    def selection(self) -> dict[str, JSON]:
        """Return what selected the cases, as it is stored and hashed."""
        return {**self.ref.selection, **({"first": self.count} if self.cut else {})}

    def first(self, number: int) -> "SelectedEnvironment":
        """Return this environment with only the first *number* of its cases."""
        if number >= self.count:
            return self
        case_positions = None if self.case_positions is None else self.case_positions[:number]
        return replace(self, count=number, case_positions=case_positions, cut=True)


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """A valid config with its environments, and the team that will own the run; None: it will be shared."""

    config: RunConfig
    environments: list[SelectedEnvironment]
    team: Team | None = None


def source_for_command(base_dir: Path | None, name: str) -> ConfigSource:
    """Return the source of a config on the command line: it may name files, and variables that settings allow."""
    return ConfigSource(
        name=name,
        base_dir=base_dir,
        lookup=settings.ENV.lookup,
        variables=frozenset(settings.CONFIG_VARIABLES),
        key_variables=frozenset(settings.API_KEY_VARIABLES),
    )


def resolve_config(parsed: ParsedConfig) -> ResolvedConfig:
    """Return the parsed config with all its environments. Raises ConfigError with every problem of both."""
    environments = _find_environments(parsed)
    if parsed.config is not None and parsed.config.limits.budget_usd is not None:
        reported = [problem.path for problem in parsed.problems]
        for path in parsed.unpriced:
            if yaml_source.dotted(path) not in reported:  # otherwise there is no model at this place
                parsed.add_problem(path, _UNPRICED)
    _check_answerable(parsed, environments)
    return ResolvedConfig(parsed.require_valid(), environments)


def with_team(resolved: ResolvedConfig, *, user: User | None, models: Iterable[ModelEndpoint] = ()) -> ResolvedConfig:
    """Return *resolved* with the team that will own the run. Raises ConfigError if there is none that can.

    user: who starts the run; None for a command. models: the registered models that it names.
    """
    parts = [item.version.environment for item in resolved.environments if item.version is not None]
    try:
        return replace(resolved, team=choose_team(user, resolved.config.team, [*parts, *models]))
    except TeamError as error:
        raise ConfigError([Problem(error.message, error.path)]) from None


def _check_answerable(parsed: ParsedConfig, environments: list[SelectedEnvironment]) -> None:
    """Report each model whose provider cannot answer one of the environments: under test, or in a role of it."""
    if parsed.config is None:
        return
    for item in environments:
        slug = item.compiled.slug
        places: list[tuple[yaml_source.Path, ModelSpec]] = [
            (("models", i), spec) for i, spec in enumerate(parsed.config.models)
        ]
        for role in item.compiled.roles:
            places += [(("roles", role, i), spec) for i, spec in enumerate(parsed.config.roles.get(role, ()))]
        for place, spec in places:
            # check_models has reported an unknown provider
            reason = PROVIDERS[spec.provider].unanswered(slug) if spec.provider in PROVIDERS else ""
            if reason:
                parsed.add_problem(place, f"{spec.name!r} {reason}; name a model of another provider")


def describe_unused_recordings(resolved: ResolvedConfig) -> list[str]:
    """Return a sentence for each recording and environment if it has replies to cases that do not exist there."""
    models = [(PROVIDERS[spec.provider], spec.options) for spec in resolved.config.all_specs()]
    providers = [(provider, provider.Options.model_validate(options)) for provider, options in models]
    alone = len(resolved.environments) == 1
    found: dict[str, None] = {}  # several models may use one recording
    for item in resolved.environments:
        list_ids = cache(item.list_ids)
        for provider, options in providers:
            found[provider.describe_unused(options, item.compiled.slug, list_ids, alone=alone)] = None
    return [sentence for sentence in found if sentence]


def describe_tiny_prices(resolved: ResolvedConfig) -> list[str]:
    """Return a sentence for each model whose price looks like one per token, as providers' lists often give it."""
    specs = {spec.name: spec.price for spec in resolved.config.all_specs() if spec.price is not None}
    return [
        f"{name} has a price of {highest:g} USD per million tokens. If this is per token, multiply it by 1,000,000."
        for name, price in specs.items()
        if 0 < (highest := max(price.input, price.output)) < _TINY_PRICE
    ]


def _find_environments(parsed: ParsedConfig) -> list[SelectedEnvironment]:
    add_problem = parsed.add_problem
    found: list[SelectedEnvironment] = []
    places: dict[str, yaml_source.Path] = {}
    for i, ref in parsed.environments.items():
        place: yaml_source.Path = ("environments", i)
        try:
            item = _find(parsed, ref)
        except VersionNotFound as error:
            add_problem(place, str(error))
            continue
        except BundleError as error:
            for problem in error.problems:
                add_problem((*place, "path"), f"{ref.path}: {problem}")
            continue
        except UnknownCases as error:
            add_problem((*place, "cases"), str(error))
            continue
        except (CompileError, ValidationError):
            add_problem(place, f"{ref.environment} cannot be used: its stored manifest is not valid; import it again")
            continue
        slug = item.compiled.slug
        if slug in places:
            other = yaml_source.dotted(places[slug])
            add_problem(place, f"{slug} is also {other}; a run evaluates only one version of an environment")
        places.setdefault(slug, place)
        for role in item.compiled.roles:
            if role not in parsed.roles:
                add_problem(place, f"{slug} needs a model for the role {role!r}; add it under `roles`")
        found.append(item)
    return found


def _find(parsed: ParsedConfig, ref: EnvironmentRef) -> SelectedEnvironment:
    """Return the environment that *ref* names, with its selected cases."""
    if ref.path is not None:
        return _find_bundle(parsed, ref, ref.path)
    version = get_version(ref.slug, ref.version)
    compiled = compile_version(version)
    list_ids = partial(list_case_ids, version)
    count, case_positions = _select_cases(parsed.seed, ref, compiled.slug, version.case_count, list_ids)
    return SelectedEnvironment(
        ref=ref,
        compiled=compiled,
        digest=version.digest,
        count=count,
        case_positions=case_positions,
        list_ids=list_ids,
        version=version,
    )


def _find_bundle(parsed: ParsedConfig, ref: EnvironmentRef, given: str) -> SelectedEnvironment:
    """Find the stored version of a bundle at a path, or check the bundle without storing it."""
    base_dir = parsed.source.base_dir
    if base_dir is None:
        raise BundleError("bundles by path may be named on the command line only; upload the bundle instead")
    path = (base_dir / given).resolve()
    cases: CheckedCases | None = None
    list_ids: Callable[[], list[str]]
    with open_bundle(path) as bundle:
        stored = find_by_digest(bundle.digest)
        if stored is not None:
            total, list_ids = stored.case_count, partial(list_case_ids, stored)
        else:
            cases = CheckedCases(bundle)
            total, list_ids = cases.count, cases.ids
            find_version_of_bundle(bundle)  # storing it would fail: report that with the problems of the config
        compiled, digest = bundle.compile(), bundle.digest
    count, case_positions = _select_cases(parsed.seed, ref, compiled.slug, total, list_ids)
    return SelectedEnvironment(
        ref=ref,
        compiled=compiled,
        digest=digest,
        count=count,
        case_positions=case_positions,
        list_ids=list_ids,
        path=path,
        cases=cases,
    )


def _select_cases(
    seed: int, ref: EnvironmentRef, slug: str, total: int, list_ids: Callable[[], list[str]]
) -> tuple[int, list[int] | None]:
    """Return the number of selected cases, and their positions unless they are the first ones.

    total: number of all cases. list_ids: returns the ids of all cases.
    """
    if ref.cases is not None:
        ids = list_ids()
        places = {case_id: position for position, case_id in enumerate(ids)}
        unknown = [case_id for case_id in ref.cases if case_id not in places]
        if unknown:
            near = f"; {wording.suggest(unknown[0], ids)}" if len(unknown) == 1 else ""
            raise UnknownCases(f"{slug} has no case {wording.name_some(map(repr, unknown), 10)}{near}")
        positions = sorted({places[case_id] for case_id in ref.cases})
        return len(positions), positions
    if ref.sample is not None and ref.sample < total:
        # By hash, not by shuffle: the same seed selects the same cases even if the dataset grows.
        ids = list_ids()
        drawn = sorted(range(total), key=lambda i: digests.digest([seed, slug, ids[i]]))
        positions = sorted(drawn[: ref.sample])
        return len(positions), positions
    return min(total, ref.limit or total), None


def config_hash(config: RunConfig, environments: list[SelectedEnvironment]) -> str:
    """Return the SHA-256 of everything that can change a result: not labels, concurrency, tracking and credentials."""
    return digests.digest(
        {
            "environments": sorted(
                ({"digest": item.digest, "selection": item.selection} for item in environments),
                key=digests.canonical_json,
            ),
            "models": sorted(fingerprint(spec) for spec in config.models),
            "roles": {role: [fingerprint(spec) for spec in specs] for role, specs in config.roles.items()},
            "stages": {
                stage.key: identity
                for stage in stages()
                if stage.key in config.stage_configs
                and (identity := stage.identity(config.stage_configs[stage.key])) is not None
            },
            "attempts": config.attempts,
            "limits": config.limits.model_dump(mode="json", exclude={"budget_usd", "retries", "identical_errors"}),
            "seed": config.seed,
        }
    )


def fingerprint(spec: ModelSpec) -> str:
    """Return the SHA-256 of everything that determines the replies of a model. Its label does not."""
    provider = PROVIDERS[spec.provider]
    return provider.fingerprint(spec, provider.Options.model_validate(spec.options))
