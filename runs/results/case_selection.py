"""Cases of a run that a page shows: those of a slice, and those that no, some or all responses passed."""

from hub.common.errors import UserError
from hub.models import Case
from runs.models import Run
from runs.results.breakdown.slices import case_values
from runs.results.case_grid import grid_cases


class UnknownSlice(UserError):
    """The run has no such environment or slice. The path is the name of the parameter."""


def select_cases(run: Run, environment: str, *, by: str = "", value: str = "", solved: str = "") -> set[str] | None:
    """Return the ids of the cases of *environment* whose metadata *by* is *value*, and of the given part of the grid.

    *solved* as `share` in `grid_cases`. Returns None, for all cases, if neither is given. Raises UnknownSlice.
    """
    if value and not by:
        raise UnknownSlice("Name the key of the metadata that has the value.", "by")
    if not by and not solved:
        return None
    run_environment = run.environments.filter(version__environment__slug=environment).first()
    if run_environment is None:
        raise UnknownSlice("Select an environment of the run to export a part of its cases.", "environment")
    rows = (
        grid_cases(run_environment, share=solved)
        if solved
        else Case.objects.filter(version_id=run_environment.version_id)
    )
    if by:
        values = case_values(run_environment).get(by, {})
        if value not in values:
            raise UnknownSlice(f"No case of {environment} has {by}: {value} in its metadata.", "value")
        rows = rows.filter(pk__in=values[value])
    return set(rows.values_list("external_id", flat=True))
