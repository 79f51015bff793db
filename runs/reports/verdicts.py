"""One sentence for each environment of a run: which model is better, or how good the only one is."""

from collections.abc import Sequence
from itertools import groupby

from hub.common.output.foreign_text import clean
from hub.common.wording import counted
from runs.reports import formats
from runs.reports.differences import describe_correction, describe_size
from runs.results.figures import CellResult, Lead
from runs.results.statistics.confidence_level import is_significant

_NAMED = 3  # of more models than these, a sentence names the closest ones and counts the others


def verdicts(cells: Sequence[CellResult]) -> list[str]:
    """Return a sentence for each environment that has a scored case, in the order of *cells*."""
    sentences = []
    for slug, group in groupby(cells, key=lambda cell: cell.slug):
        scored = [cell for cell in group if cell.accuracy.value is not None]
        if scored:
            sentences.append(clean(_sentence(slug, scored)))
    return sentences


def _sentence(slug: str, cells: Sequence[CellResult]) -> str:
    best = next((cell for cell in cells if cell.figures.leads), None)
    if best is None:
        return "; ".join(_describe_only_model(cell) for cell in cells[:_NAMED]) + "."
    leads = best.figures.leads
    ahead = [lead for lead in leads if _is_shown(lead) and (lead.difference or 0.0) > 0]
    behind = [lead for lead in leads if _is_shown(lead) and (lead.difference or 0.0) < 0]
    level = [lead for lead in leads if not _is_shown(lead)]
    if len(leads) > _NAMED:
        return _describe_many(slug, best, ahead, behind, level)
    if not ahead and not behind:
        return f"No model is shown to be better on {slug}: {_describe_undecided(best, level)}."
    parts = [f"{best.model} is better than {_name_leads(slug, ahead)}"] if ahead else []
    parts += [_describe_better(slug, best, lead) for lead in behind]
    parts += [_describe_undecided(best, level, also=True)] if level else []
    return f"{'; '.join(parts)}."


def _describe_only_model(cell: CellResult) -> str:
    number = counted(cell.accuracy.n, "case")
    passes = f"{cell.model} passes {formats.percent(cell.accuracy.value)}"
    if cell.accuracy.bounds is None:
        return f"{passes} of {cell.slug} (n = {number}, without an interval)"
    return f"{passes} {formats.interval(*cell.accuracy.bounds)} of {cell.slug} (n = {number})"


def _name_leads(slug: str, leads: Sequence[Lead]) -> str:
    named = [
        f"{lead.over}{'' if i else f' on {slug}'} by {_describe_size(lead)} (n = {counted(lead.cases, 'case')})"
        for i, lead in enumerate(leads)
    ]
    return ", than ".join(named)


def _describe_better(slug: str, best: CellResult, lead: Lead) -> str:
    """Return that the other model of *lead* is better: it was worse only on cases that the first did not score."""
    return (
        f"{lead.over} is better than {best.model} on {slug} by {_describe_size(lead)} "
        f"on the {counted(lead.cases, 'case')} that both scored, "
        f"although {best.model} has the higher accuracy on its own cases"
    )


def _describe_undecided(best: CellResult, leads: Sequence[Lead], *, also: bool = False) -> str:
    named = []
    for lead in leads:
        if not _is_compared(lead):
            named.append(f"{best.model} and {lead.over} cannot be compared: {lead.note}")
            continue
        power = ""
        if lead.detectable is not None:
            power = f", which find a true difference of {formats.size(lead.detectable)} points with 80 % power"
            power += " before Holm's correction" if len(best.figures.leads) > 1 else ""
        named.append(
            f"{best.model} and {lead.over} differ by {formats.points(lead.difference, plus=False)} points "
            f"{formats.interval(lead.low, lead.high)} "
            f"(n = {counted(lead.cases, 'case')}{power}{_describe_correction(lead)})"
        )
    return ("no difference is shown where " if also else "") + "; ".join(named)


def _describe_many(
    slug: str, best: CellResult, ahead: Sequence[Lead], behind: Sequence[Lead], level: Sequence[Lead]
) -> str:
    """Return the sentence about many models: how many are worse or level, with the closest one of each."""
    total = len(ahead) + len(behind) + len(level)
    compared = [lead for lead in level if _is_compared(lead)]
    apart = [lead for lead in level if not _is_compared(lead)]
    parts = []
    if ahead:
        count = f"all {total:,}" if len(ahead) == total else f"{len(ahead):,} of the {total:,}"
        parts.append(f"{best.model} is better than {count} other models on {slug} (than {_describe_closest(ahead)})")
    if behind:
        parts.append(_describe_better(slug, best, min(behind, key=lambda lead: lead.difference or 0.0)))
    if len(behind) > 1:
        parts.append(f"so are {len(behind) - 1:,} more")
    if compared:
        other = "" if ahead or behind else f" of {best.model}, the most accurate,"
        which = f"the {total:,} others" if len(compared) == total else f"{len(compared):,}"
        parts.append(f"no difference{other} from {which} is shown (from {_describe_closest(compared)})")
    if apart:
        notes = " or ".join(dict.fromkeys(lead.note for lead in apart))
        parts.append(f"{len(apart):,} cannot be compared with {best.model}: {notes}")
    start = "" if ahead or behind else f"No model is shown to be better on {slug}: "
    return f"{start}{'; '.join(parts)}."


def _describe_closest(leads: Sequence[Lead]) -> str:
    """Return the model with the smallest difference to the best one, and that difference."""
    lead = min(leads, key=lambda lead: abs(lead.difference or 0.0))
    which = ", the closest of them," if len(leads) > 1 else ""
    points = formats.points(lead.difference, plus=False)
    interval = formats.interval(lead.low, lead.high)
    number = counted(lead.cases, "case")
    return f"{lead.over}{which} by {points} points {interval}, n = {number}{_describe_correction(lead)}"


def _describe_size(lead: Lead) -> str:
    return describe_size(lead.difference, lead.low, lead.high)


def _describe_correction(lead: Lead) -> str:
    return describe_correction(lead.p_value, lead.p_adjusted)


def _is_compared(lead: Lead) -> bool:
    """Return whether the difference has an interval; otherwise the note of *lead* has the reason."""
    return lead.low is not None


def _is_shown(lead: Lead) -> bool:
    """Return whether a difference is shown, in favour of either model."""
    return is_significant(lead.p_adjusted)
