"""Selection of what an export of a run contains: its models and environments, and none that is held out."""

from collections.abc import Iterable

from hub.common.wording import end_sentence, suggest, unknown_name
from hub.models import EnvironmentVersion
from runs.exports.protocol import ExportError
from runs.models import Run, RunEnvironment, RunModel
from runs.selectors import models_under_test

HELD_OUT_SPLIT = "of a held-out split"  # reasons why items are left out of exports
DEFECTIVE = "of a case that was found wrong"


def check_known(noun: str, name: str, known: Iterable[str], path: str) -> None:
    """Raise ExportError at *path* if *name* is not one of *known*; the message suggests the closest of them."""
    names = list(known)
    if name not in names:
        raise ExportError(unknown_name(noun, name, names), path)


def find_run_model(run: Run, label: str) -> RunModel | None:
    """Return the model under test of *run* with that label, or None if it is empty. Raises ExportError."""
    if not label:
        return None
    models = {model.label: model for model in models_under_test(run)}
    if label not in models:
        raise ExportError(end_sentence(f"Run {run.pk} has no model {label!r}; {suggest(label, models)}"), "model")
    return models[label]


def find_run_environments(run: Run, slug: str) -> list[RunEnvironment]:
    """Return the environment *slug* of *run*, or all of them if it is empty. Raises ExportError."""
    environments = {
        item.version.environment.slug: item
        for item in run.environments.select_related("version__environment").order_by("position")
    }
    if not slug:
        return list(environments.values())
    if slug not in environments:
        advice = suggest(slug, environments)
        raise ExportError(end_sentence(f"Run {run.pk} has no environment {slug!r}; {advice}"), "environment")
    return [environments[slug]]


def is_held_out(version: EnvironmentVersion) -> bool:
    """Return whether the environment is held out, by its manifest or by a curator."""
    return version.environment.held_out or bool(version.manifest.get("held_out"))


def refuse_held_out(versions: Iterable[EnvironmentVersion], alternative: str = "") -> None:
    """Raise ExportError if one of *versions* is held out; *alternative* completes the advice."""
    held = [str(version) for version in versions if is_held_out(version)]
    if held:
        raise ExportError(
            f"{', '.join(held)} is held out: training on it would make every later score on it meaningless. "
            f"Choose an environment that is not held out{', ' + alternative if alternative else ''}.",
            "environment",
        )
