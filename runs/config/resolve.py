"""From a config to what it names: environments found, cases chosen, models identified, all digested. Writes nothing."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.conf import settings

from hub.bundles.loader import open_bundle
from hub.bundles.validation import PreparedCase, bundle_problems
from hub.common import digests, wording
from hub.common.documents import yaml_source
from hub.common.errors import NotFound
from hub.environments.compiled import CompiledEnvironment
from hub.manifest.problems import BundleError
from hub.models import EnvironmentVersion
from hub.selectors import VersionNotFound, case_ids, compile_version, get_version
from runs.config.parsing import Note, ParsedConfig
from runs.config.schema import EnvironmentRef, RunConfig
from runs.config_source import ConfigSource
from runs.providers.base import ModelSpec
from runs.providers.registry import PROVIDERS
from runs.stages import stages

_UNPRICED = (
    "has no price, by which a budget is kept; add `price: {input: ..., output: ...}`, with 0 where it is free, "
    "or leave `budget_usd` out"
)


class UnknownCases(NotFound):
    """An environment lacks cases that were asked for; the text is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedEnvironment:
    """An environment of a config, found, and the cases chosen: positions, or None for the first *count*.

    `version` is None while the environment is a bundle (`path`) that is still to be imported.
    """

    ref: EnvironmentRef
    compiled: CompiledEnvironment
    digest: str
    count: int
    case_positions: list[int] | None
    version: EnvironmentVersion | None = None
    path: Path | None = None
    cut: bool = False

    @property
    def label(self) -> str:
        """slug@version"""
        return f"{self.compiled.slug}@{self.compiled.manifest.version}"

    @property
    def selection(self) -> dict[str, Any]:
        """What chose the cases, as it is stored and hashed."""
        return {**self.ref.selection, **({"first": self.count} if self.cut else {})}

    def first(self, number: int) -> "SelectedEnvironment":
        """The first *number* of the chosen cases."""
        if number >= self.count:
            return self
        case_positions = None if self.case_positions is None else self.case_positions[:number]
        return replace(self, count=number, case_positions=case_positions, cut=True)


def source_for_command(base_dir: Path | None, name: str) -> ConfigSource:
    """What a config on the command line may name: files beside it, and the variables that settings allow."""
    return ConfigSource(
        name=name,
        base_dir=base_dir,
        lookup=settings.ENV.lookup,
        variables=frozenset(settings.CONFIG_VARIABLES),
        key_variables=frozenset(settings.API_KEY_VARIABLES),
    )


def resolve_config(parsed: ParsedConfig) -> tuple[RunConfig, list[SelectedEnvironment]]:
    """The config that was read, and every environment of it. Raises ConfigError with all that is wrong of either."""
    found = _environments(parsed, parsed.note)
    if parsed.config is not None and parsed.config.limits.budget_usd is not None:
        told = [problem.path for problem in parsed.problems]
        for path in parsed.unpriced:
            if yaml_source.dotted(path) not in told:  # else no model stands there at all
                parsed.note(path, _UNPRICED)
    return parsed.require_valid(), found


def find_environments(config: RunConfig) -> list[SelectedEnvironment]:
    """Look up every environment of *config*. Raises ConfigError with all that is missing or that no model fills."""
    parsed = ParsedConfig(ConfigSource(base_dir=config.base_dir))
    parsed.environments = dict(enumerate(config.environments))
    parsed.roles, parsed.seed, parsed.config = frozenset(config.roles), config.seed, config
    return resolve_config(parsed)[1]


def _environments(parsed: ParsedConfig, note: Note) -> list[SelectedEnvironment]:
    found: list[SelectedEnvironment] = []
    places: dict[str, yaml_source.Path] = {}
    for i, ref in parsed.environments.items():
        where: yaml_source.Path = ("environments", i)
        try:
            item = _find(parsed, ref)
        except VersionNotFound as error:
            note(where, str(error))
            continue
        except BundleError as error:
            for problem in error.problems:
                note((*where, "path"), f"{ref.path}: {problem}")
            continue
        except UnknownCases as error:
            note((*where, "cases"), str(error))
            continue
        slug = item.compiled.slug
        if slug in places:
            note(where, f"{slug} is also {yaml_source.dotted(places[slug])}; a run plays one version of an environment")
        places.setdefault(slug, where)
        for role in item.compiled.roles:
            if role not in parsed.roles:
                note(where, f"{slug} asks a model by the role {role!r}; add it under `roles`")
        found.append(item)
    return found


def _find(parsed: ParsedConfig, ref: EnvironmentRef) -> SelectedEnvironment:
    if ref.path is not None:
        return _find_bundle(parsed, ref, ref.path)
    version = get_version(ref.slug, ref.version)
    compiled = compile_version(version)
    if not ref.selection or ref.limit is not None:
        count = min(version.case_count, ref.limit or version.case_count)
        return SelectedEnvironment(
            ref=ref, compiled=compiled, digest=version.digest, count=count, case_positions=None, version=version
        )
    count, case_positions = _select_cases(parsed.seed, ref, compiled.slug, case_ids(version))
    return SelectedEnvironment(
        ref=ref, compiled=compiled, digest=version.digest, count=count, case_positions=case_positions, version=version
    )


def _find_bundle(parsed: ParsedConfig, ref: EnvironmentRef, given: str) -> SelectedEnvironment:
    """A bundle named by its path, looked through but not stored."""
    base_dir = parsed.source.base_dir
    if base_dir is None:
        raise BundleError("bundles by path may be named on the command line only; upload the bundle instead")
    path = (base_dir / given).resolve()
    ids: list[str] = []

    def note(prepared: PreparedCase) -> None:
        ids.append(prepared.case.id)

    with open_bundle(path) as bundle:
        found = bundle_problems(bundle, on_case=note)
        if found:
            raise BundleError(found)
        compiled, digest = bundle.compile(), bundle.digest
    count, case_positions = _select_cases(parsed.seed, ref, compiled.slug, ids)
    return SelectedEnvironment(
        ref=ref, compiled=compiled, digest=digest, count=count, case_positions=case_positions, path=path
    )


def _select_cases(seed: int, ref: EnvironmentRef, slug: str, ids: list[str]) -> tuple[int, list[int] | None]:
    """How many cases, and their positions where they are not simply the first ones. *ids* are in order of position."""
    if ref.cases is not None:
        places = {case_id: position for position, case_id in enumerate(ids)}
        unknown = [case_id for case_id in ref.cases if case_id not in places]
        if unknown:
            near = f"; {wording.suggest(unknown[0], ids)}" if len(unknown) == 1 else ""
            more = f" and {len(unknown) - 10:,} more" if len(unknown) > 10 else ""
            raise UnknownCases(f"{slug} has no case {', '.join(map(repr, unknown[:10]))}{more}{near}")
        chosen = sorted({places[case_id] for case_id in ref.cases})
        return len(chosen), chosen
    if ref.sample is not None and ref.sample < len(ids):
        # By hash rather than by shuffle: the same seed chooses the same cases whatever else the dataset gains.
        drawn = sorted(range(len(ids)), key=lambda i: digests.digest([seed, slug, ids[i]]))
        chosen = sorted(drawn[: ref.sample])
        return len(chosen), chosen
    return min(len(ids), ref.limit or len(ids)), None


def config_hash(config: RunConfig, found: list[SelectedEnvironment]) -> str:
    """SHA-256 of everything that can change a result; labels, concurrency, tracking and credentials cannot."""
    return digests.digest(
        {
            "environments": sorted(
                ({"digest": item.digest, "selection": item.selection} for item in found),
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
    """SHA-256 of all that decides a model's answers, its label aside."""
    provider = PROVIDERS[spec.provider]
    return provider.fingerprint(spec, provider.Options.model_validate(spec.options))
