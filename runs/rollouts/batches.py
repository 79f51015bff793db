"""Batches of episodes: groups of attempts at the same case, which trainers compare with each other."""

import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from hub.common.digests import attempt_seed
from hub.common.wording import counted
from hub.models import EnvironmentVersion
from hub.protocols.cases import case_split
from runs.rollouts.creation import (
    NewRollout,
    RolloutOptions,
    check_case,
    check_limit,
    check_split,
    check_trainable,
    create_rollout,
)
from runs.rollouts.errors import RolloutError
from runs.rollouts.sessions import delete_rollout

MAX_EPISODES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutGroup:
    """Episodes of one case. `id` is stored with each."""

    id: str
    case: str
    rollouts: list[NewRollout]


def create_batch(
    options: RolloutOptions,
    *,
    cases: Sequence[str] | None = None,
    n: int | None = None,
    split: str = "",
    group_size: int = 1,
) -> list[RolloutGroup]:
    """Start *group_size* episodes of each of *cases*, or of *n* cases drawn without repetition.

    The attempts of a group are numbered from 1. *split* limits the drawing to cases whose column `split` has this
    value. If an episode cannot be started, none is.

    Raises RolloutError, TooManyEpisodes, EnvironmentFailed, RolloutFailed, TeamError, QuotaExceeded.
    """
    check_trainable(options)
    if cases is not None:
        chosen = _check_cases(options.version, cases, split)
    else:
        chosen = _draw(options.version, n or 1, split, options.seed)
    count = len(chosen) * group_size
    if count > MAX_EPISODES:
        raise RolloutError(f"This would start {count:,} episodes; at most {MAX_EPISODES} per request.", "group_size")
    if count > settings.EPISODES_PER_USER:  # no later attempt would succeed
        raise RolloutError(
            f"This would start {count:,} episodes; a user may have at most {settings.EPISODES_PER_USER:,} open ones.",
            "group_size",
        )
    check_limit(options.user, count)
    groups: list[RolloutGroup] = []
    try:
        for case in chosen:
            group = RolloutGroup(id=uuid.uuid4().hex, case=case, rollouts=[])
            groups.append(group)
            for attempt in range(1, group_size + 1):
                group.rollouts.append(create_rollout(options, case_id=case, attempt=attempt, group=group.id))
    except BaseException:
        for rollout in (rollout for group in groups for rollout in group.rollouts):
            delete_rollout(session=rollout.session)
        raise
    return groups


def _check_cases(version: EnvironmentVersion, cases: Sequence[str], split: str) -> list[str]:
    if split:
        raise RolloutError("It applies to cases that are drawn; remove it, or remove `cases`.", "split")
    if len(set(cases)) < len(cases):
        raise RolloutError("A case is listed twice. Use `group_size` for several attempts.", "cases")
    known = {case.external_id: case for case in version.cases.filter(external_id__in=cases).defer("data")}
    for index, name in enumerate(cases):
        if name not in known:
            raise RolloutError(f"{version} has no case {name!r}.", f"cases[{index}]")
        check_case(known[name], f"cases[{index}]")
    return list(cases)


def _draw(version: EnvironmentVersion, n: int, split: str, seed: int) -> list[str]:
    cases = version.cases.filter(held_out=False).order_by("position")
    if split:
        rows = cases.values_list("external_id", "data").iterator(chunk_size=500)
        splits = {case: case_split(data) for case, data in rows}
        check_split(split, set(splits.values()))
        ids = [case for case, value in splits.items() if value == split]
    else:
        ids = list(cases.values_list("external_id", flat=True))
    if len(ids) < n:
        where = f" with the split {split!r}" if split else ""
        raise RolloutError(f"{version} has {counted(len(ids), 'case')}{where}, fewer than {n:,}.", "n")
    drawn = random.Random(attempt_seed(seed, version.environment.slug, split, 1))  # noqa: S311 - reproducible
    return drawn.sample(ids, n)
