"""One sentence for each environment of a run: which model is better, or how good the only one is."""

from collections.abc import Sequence
from itertools import groupby

from runs.reports import formats
from runs.results.figures import CellResult, Lead

_NAMED = 3  # models that a sentence names; the others are counted
_SIGNIFICANT = 0.05


def verdicts(cells: Sequence[CellResult]) -> list[str]:
    """Return a sentence for each environment that has a scored case, in the order of *cells*."""
    sentences = []
    for slug, group in groupby(cells, key=lambda cell: cell.slug):
        scored = [cell for cell in group if cell.accuracy.value is not None]
        if scored:
            sentences.append(formats.clean(_sentence(slug, scored)))
    return sentences


def _sentence(slug: str, cells: Sequence[CellResult]) -> str:
    best = next((cell for cell in cells if cell.figures.leads), None)
    if best is None:
        return "; ".join(_describe_only_model(cell) for cell in cells[:_NAMED]) + "."
    leads = best.figures.leads
    ahead = [lead for lead in leads if _is_ahead(lead)]
    level = [lead for lead in leads if not _is_ahead(lead)]
    if not ahead:
        return f"No model is shown to be better on {slug}: {_describe_undecided(best, level)}."
    text = f"{best.model} is better than {_name_leads(ahead)}"
    text = text.replace(" by ", f" on {slug} by ", 1)
    return f"{text}; {_describe_undecided(best, level, also=True)}." if level else f"{text}."


def _describe_only_model(cell: CellResult) -> str:
    interval = formats.interval(cell.accuracy.low, cell.accuracy.high)
    return (
        f"{cell.model} passes {formats.percent(cell.accuracy.value)} {interval} of {cell.slug} "
        f"(n = {cell.accuracy.n:,} cases)"
    )


def _name_leads(leads: Sequence[Lead]) -> str:
    named = [
        f"{lead.over} by {100 * (lead.difference or 0.0):.1f} points {formats.interval(lead.low, lead.high)} "
        f"(n = {lead.cases:,} cases)"
        for lead in leads[:_NAMED]
    ]
    more = len(leads) - len(named)
    return ", than ".join(named) + (f", and than {more:,} more" if more else "")


def _describe_undecided(best: CellResult, leads: Sequence[Lead], *, also: bool = False) -> str:
    named = []
    for lead in leads[:_NAMED]:
        text = f"{best.model} and {lead.over} differ by {formats.points(lead.difference).lstrip('+')} points"
        found = ""
        if lead.detectable is not None:
            points = formats.points(lead.detectable).lstrip("+")
            found = f", which find a true difference of {points} points with 80 % power"
        text += f" {formats.interval(lead.low, lead.high)} (n = {lead.cases:,} cases{found})"
        named.append(text)
    more = len(leads) - len(named)
    return ("no difference is shown where " if also else "") + "; ".join(named) + (f"; {more:,} more" if more else "")


def _is_ahead(lead: Lead) -> bool:
    return bool(lead.difference and lead.p_adjusted is not None and lead.p_adjusted < _SIGNIFICANT)
