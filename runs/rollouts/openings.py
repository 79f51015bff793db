"""Cases as a trainer sees them before an episode: opening messages, tools and split."""

from dataclasses import dataclass

from hub.environments.episodes import Episode, Observation
from hub.models import Team
from hub.protocols.cases import case_split
from runs.models import EpisodeSession
from runs.rollouts.creation import RolloutOptions, check_split, check_trainable, choose_paying_team, new_session
from runs.rollouts.errors import RolloutError
from runs.rollouts.rebuilding import advance

MAX_CASES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOpening:
    """A case with the first observation of its episodes; `observation` is None if it was not requested."""

    case: str
    split: str
    observation: Observation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePage:
    """Cases from an offset on, and the number of all cases."""

    total: int
    cases: list[CaseOpening]


def list_openings(
    options: RolloutOptions,
    *,
    split: str = "",
    offset: int = 0,
    limit: int = MAX_CASES,
    opened: bool = True,
) -> CasePage:
    """Return at most *limit* cases from *offset* on, in the order of the dataset. Nothing is stored.

    Cases of held-out splits are left out. *split* selects cases whose column `split` has this value. *opened*:
    reset an episode of each case and return its first observation. It is that of the attempt 1.

    Raises RolloutError if the environment, the split or the roles are wrong, and EnvironmentFailed or RolloutFailed if
    a reset fails. TeamError and QuotaExceeded concern the team that pays for the roles.
    """
    version = options.version
    payer: Team | None = None
    if opened:
        check_trainable(options)
        payer = choose_paying_team(options)
    elif version.environment.held_out:
        raise RolloutError(f"{version.environment.slug} is held out: it must not be used for training.")
    rows = version.cases.filter(held_out=False).order_by("position").values_list("pk", "data").iterator(chunk_size=500)
    splits = {pk: case_split(data) for pk, data in rows}
    check_split(split, set(splits.values()))
    selected = [pk for pk, value in splits.items() if not split or value == split]
    cases = version.cases.in_bulk(selected[offset : offset + limit])
    page = [
        CaseOpening(
            case=cases[pk].external_id,
            split=splits[pk],
            observation=_open(new_session(options, cases[pk], payer)) if opened else None,
        )
        for pk in selected[offset : offset + limit]
    ]
    return CasePage(total=len(selected), cases=page)


def _open(session: EpisodeSession) -> Observation:
    """Return the first observation of the episode of *session*, which is reset, closed and not stored."""
    return advance(session, _reset_and_close)


async def _reset_and_close(episode: Episode) -> Observation:
    try:
        return await episode.reset()
    finally:
        await episode.close()
