"""Checks a bundle without running any of it: every problem at once, each with its place and a remedy."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hub.bundles.cases import PreparedCase, prepared_cases
from hub.bundles.loader import Bundle, open_bundle
from hub.bundles.problems import MAX_LISTED, BundleError, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What validation found. `slug`, `version` and `digest` are empty where the bundle could not be read so far."""

    problems: list[Problem] = field(default_factory=list)
    slug: str = ""
    version: str = ""
    digest: str = ""
    cases: int = 0

    @property
    def valid(self) -> bool:
        return not self.problems


def validate(path: str | Path) -> Report:
    """Look the bundle at *path* through. Never raises for what the bundle holds."""
    try:
        bundle = open_bundle(path)
    except BundleError as error:
        return Report(problems=error.problems)
    with bundle:
        return validate_bundle(bundle)


def validate_bundle(bundle: Bundle) -> Report:
    """Look an opened bundle through."""
    count = 0

    def note(_: PreparedCase) -> None:
        nonlocal count
        count += 1

    problems = bundle_problems(bundle, on_case=note)
    try:
        slug, version = bundle.manifest.slug, bundle.manifest.version
    except BundleError:
        slug = version = ""
    return Report(problems=problems, slug=slug, version=version, digest=bundle.digest, cases=count)


def bundle_problems(bundle: Bundle, *, on_case: Callable[[PreparedCase], object]) -> list[Problem]:
    """Every problem of the bundle, up to MAX_LISTED; *on_case* is given each case that is sound, in order."""
    problems: list[Problem] = []
    manifest = environment = None
    try:
        manifest = bundle.manifest
    except BundleError as error:
        problems += error.problems
        manifest = bundle.sound_part() if bundle.readable else None
    if manifest is None:
        return problems
    try:
        environment = bundle.compile(manifest)
    except BundleError as error:
        problems += error.problems
    for found in prepared_cases(manifest, environment, bundle.file):
        if isinstance(found, PreparedCase):
            on_case(found)
            continue
        problems.append(found)
        if len(problems) == MAX_LISTED:
            problems.append(
                Problem(file=found.file, message=f"more than {MAX_LISTED} problems; the rest is not shown.")
            )
            break
    return problems
