"""Leads: paired differences between the best model of an environment and each other model."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from runs.results.counting import clusters_of
from runs.results.figures import CellResult, Lead
from runs.results.statistics.paired import holm, paired_difference

CaseMeans = Mapping[int, float]  # case id -> share of scored attempts that passed


def add_leads(cells: Sequence[CellResult], means: Sequence[CaseMeans], clusters: Mapping[int, str]) -> None:
    """Store in the figures of the most accurate of *cells*, all of one environment, its lead over each other one.

    A pair is compared on the cases that both scored. Holm's correction covers every two of the models, since the best
    one is known only from the results. The pairs without it are not tested and count as 1.
    """
    scored = [i for i, cell in enumerate(cells) if cell.accuracy.value is not None]
    if len(scored) < 2:
        return
    best = max(scored, key=lambda i: cells[i].accuracy.value or 0.0)
    leads = [_lead(cells[i].model, means[best], means[i], clusters) for i in scored if i != best]
    tested = [i for i, lead in enumerate(leads) if lead.p_value is not None]
    p_values = [leads[i].p_value or 0.0 for i in tested]
    others = math.comb(len(scored) - 1, 2)
    for i, adjusted in zip(tested, holm([*p_values, *[1.0] * others]), strict=False):
        leads[i] = replace(leads[i], p_adjusted=adjusted)
    cells[best].figures.leads = leads


def _lead(model: str, best: CaseMeans, other: CaseMeans, clusters: Mapping[int, str]) -> Lead:
    shared = [case for case in best if case in other]
    values = [best[case] for case in shared], [other[case] for case in shared]
    paired = paired_difference(*values, clusters_of(shared, clusters))
    return Lead(
        over=model,
        cases=paired.n,
        difference=paired.difference,
        low=paired.low,
        high=paired.high,
        p_value=paired.p_value,
        detectable=paired.mde,
        note=paired.note,
    )
