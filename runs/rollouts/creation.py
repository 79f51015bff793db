"""Creation of episodes, within the limit of open episodes per user."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Min
from django.utils import timezone

from hub.common import wording
from hub.common.digests import attempt_seed
from hub.environments.episodes import Episode, Observation
from hub.models import Case, EnvironmentVersion, Team
from hub.protocols.messages import JSON
from hub.teams.choice import TeamError, choose_team
from runs.config.endpoints import endpoint_spec
from runs.limits.team_quotas import check_spend
from runs.models import EpisodeSession
from runs.providers.registry import costs_money
from runs.rollouts.errors import RolloutError, TooManyEpisodes
from runs.rollouts.expiry import next_expiry
from runs.rollouts.rebuilding import advance, close_episode, compile_for_rollout
from runs.rollouts.roles import InvalidRecordings, validate_recordings
from runs.selectors import explain_unusable_model, list_usable_models

_RETRY_SECONDS = 10  # upper limit of retry_after, because an open episode may end before it expires


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutOptions:
    """Options that all episodes of one request share.

    seed: draws the cases that are not named, and the seed of each attempt is derived from it. model: a label that the
    trainer chooses, such as the name of a checkpoint. roles: the registered models of each role. team: as in
    `choose_paying_team`.
    """

    user: User
    version: EnvironmentVersion
    seed: int = 0
    model: str = ""
    roles: Mapping[str, list[str]] = field(default_factory=dict)
    team: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRollout:
    """A new episode and its first observation."""

    session: EpisodeSession
    observation: Observation


def create_rollout(
    options: RolloutOptions,
    *,
    case_id: str | None = None,
    attempt: int = 1,
    recordings: Sequence[JSON] | None = None,
    group: str = "",
    fixed_seed: int | None = None,
) -> NewRollout:
    """Start an episode of *case_id*, or of a case drawn by the seed of *options*.

    *recordings* are replies of role models in an earlier episode of the same case and attempt; with them, the roles may
    be left out. *group* is the id of a group of attempts. *fixed_seed* is the seed of the attempt as exports contain
    it, to repeat an exported rollout; without it, the seed is derived from that of *options*, the case and *attempt*.

    Raises RolloutError, TooManyEpisodes, EnvironmentFailed, RolloutFailed, TeamError, QuotaExceeded.
    """
    replayed = recordings is not None
    check_trainable(options, replayed=replayed)
    if fixed_seed is not None and case_id is None:
        raise RolloutError("Name the case as well: the seed of an attempt belongs to one case.", "case")
    check_limit(options.user)  # before the reset, which may be expensive
    payer = choose_paying_team(options, replayed=replayed)
    session = new_session(options, _case(options, case_id), payer, attempt)
    session.group = group
    session.recordings = _recordings(recordings or [], session)
    if fixed_seed is not None:
        session.seed = fixed_seed
    observation = advance(session, _reset)
    try:
        _save_within_limit(session)
    except BaseException:
        close_episode(session)
        raise
    return NewRollout(session=session, observation=observation)


def new_session(options: RolloutOptions, case: Case, payer: Team | None, attempt: int = 1) -> EpisodeSession:
    """Return the session of an episode of *case*, which is not stored. *payer*: see `choose_paying_team`."""
    return EpisodeSession(
        user=options.user,
        case=case,
        seed=attempt_seed(options.seed, options.version.environment.slug, case.external_id, attempt),
        attempt=attempt,
        model=options.model,
        roles=dict(options.roles),
        team=payer,
        expires_at=next_expiry(),
    )


def check_trainable(options: RolloutOptions, *, replayed: bool = False) -> None:
    """Raise RolloutError if the environment is held out, or if the roles do not name the models that it needs.

    The models must be some that the user may see. Roles that it does not need are ignored, because trainers send the
    same roles for several environments, unless one that it needs is missing: then a name may be misspelled.

    replayed: whether recordings may reply instead of models.
    """
    user, version, roles = options.user, options.version, options.roles
    if version.environment.held_out:
        raise RolloutError(f"{version.environment.slug} is held out: it must not be used for training.")
    needed = compile_for_rollout(version).roles
    missing = [role for role in needed if not roles.get(role)]
    if missing and not replayed:
        raise RolloutError(
            f"{version} needs role models. Name registered models in {_keys(missing)}: {_registered(user)}.", "roles"
        )
    if missing and (others := sorted(roles.keys() - set(needed))):
        raise RolloutError(
            f"{version} needs no model for {_keys(others)}. It needs models for {_keys(needed)}.", "roles"
        )
    _check_roles(roles, user)


def _case(options: RolloutOptions, case_id: str | None) -> Case:
    version = options.version
    if case_id is None:
        drawn = attempt_seed(options.seed, version.environment.slug, "", 1)
        if not version.environment.partly_held_out:
            return version.cases.get(position=drawn % version.case_count)
        cases = version.cases.filter(held_out=False).order_by("position")
        count = cases.count()
        if not count:
            raise RolloutError(f"All cases of {version} are held out: they must not be used for training.")
        return cases[drawn % count]
    try:
        case = version.cases.get(external_id=case_id)
    except Case.DoesNotExist:
        raise RolloutError(f"{version} has no case {case_id!r}.", "case") from None
    check_case(case, "case")
    return case


def check_case(case: Case, path: str = "") -> None:
    """Raise RolloutError at the key *path* if *case* is of a held-out split."""
    if case.held_out:
        raise RolloutError(f"The case {case.external_id!r} is held out: it must not be used for training.", path)


def check_split(split: str, known: Collection[str]) -> None:
    """Raise RolloutError if *split* is given and not among *known*, the splits of cases that may be trained on."""
    if split and split not in known:
        named = sorted(filter(None, set(known)))
        raise RolloutError(wording.unknown_name("split for training", split, named, none="no case has one"), "split")


def _check_roles(roles: Mapping[str, list[str]], user: User) -> None:
    names = {name for listed in roles.values() for name in listed}
    if not names:
        return
    unknown = names - {endpoint.name for endpoint in list_usable_models(user)}
    if unknown:
        reasons = [wording.sentence(explain_unusable_model(user, name)) for name in sorted(unknown)]
        raise RolloutError(" ".join(reasons), "roles")


def choose_paying_team(options: RolloutOptions, *, replayed: bool = False) -> Team | None:
    """Return the team whose spending quota pays for the role models; None if none does.

    It is the team that owns the environment or a role model, or else that of *options*, or else the only team of the
    user, as for a run. It is also returned for free models, which may get a price before the episode ends; but then it
    may be None because the user is in several teams and named none.

    replayed: recordings reply, so that what the team has left matters only if a model is called nevertheless.

    Raises TeamError, QuotaExceeded, and UserError if a model has no price.
    """
    user, team = options.user, options.team
    names = {name for listed in options.roles.values() for name in listed}
    endpoints = [endpoint for endpoint in list_usable_models(user) if endpoint.name in names] if names else []
    paid = [spec for spec in map(endpoint_spec, endpoints) if costs_money(spec)]
    if not endpoints and not team:
        return None
    try:
        payer = choose_team(user, team, [options.version.environment, *endpoints])
    except TeamError:
        if paid or team:
            raise
        return None
    if payer is not None and paid and not replayed:
        check_spend(payer, paid, "roles")
    return payer


def _keys(roles: Iterable[str]) -> str:
    return ", ".join(f"roles.{role}" for role in roles)


def _registered(user: User) -> str:
    names = [endpoint.name for endpoint in list_usable_models(user)]
    return wording.suggest("", names) or "none is registered yet; an administrator can register one"


def _recordings(rows: Sequence[JSON], session: EpisodeSession) -> list[dict[str, JSON]]:
    case = session.case
    environment = case.version.environment.slug
    try:
        return validate_recordings(rows, environment=environment, case=case.external_id, attempt=session.attempt)
    except InvalidRecordings as error:
        raise RolloutError(str(error), "recordings") from None


def check_limit(user: User, adding: int = 1) -> None:
    """Raise TooManyEpisodes if *user* may not open *adding* more episodes."""
    now = timezone.now()
    expiries = EpisodeSession.objects.filter(user=user, done=False, expires_at__gt=now)
    count = expiries.count()
    if count + adding <= settings.EPISODES_PER_USER:
        return
    first = expiries.aggregate(first=Min("expires_at"))["first"] or now
    raise TooManyEpisodes(
        f"You have {wording.counted(count, 'open episode')}, and the limit is {settings.EPISODES_PER_USER:,}. "
        f"Finish or delete some before you start {adding:,} more; GET /api/v1/episodes/?done=false lists them.",
        retry_after=min(_RETRY_SECONDS, max(1, ceil((first - now).total_seconds()))),
    )


def _save_within_limit(session: EpisodeSession) -> None:
    """Insert *session*. Raises TooManyEpisodes if concurrent requests have reached the limit.

    The lock on the user's row lets one request of a user count and insert at a time. SQLite has no row locks, but its
    transactions hold the write lock from the beginning (transaction_mode in the settings).
    """
    with transaction.atomic():
        User.objects.select_for_update().get(pk=session.user_id)
        check_limit(session.user)
        session.save(force_insert=True)


async def _reset(episode: Episode) -> Observation:
    return await episode.reset()
