"""Checkpoints of the episodes of a run: stored after each turn, read when another process continues the run."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict
from typing import cast

from hub.common.storable import storable
from hub.environments.episodes import Episode
from hub.protocols.calls import Reply, Usage
from hub.protocols.messages import JSON
from runs.execution.model_client import ResponseTotals
from runs.execution.plan import MissingResponse
from runs.execution.storage import Reader, StoredTurn, Writer
from runs.models import EpisodeCheckpoint

RESPONSES = "runs"  # folder of the folders of episodes of runs


class Checkpoints:
    """Stores and reads the checkpoints of one run, through its reader and writer."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    async def load(self, missing: MissingResponse) -> EpisodeCheckpoint | None:
        """Return the checkpoint of a response that an earlier process began; None if there is none."""
        return await self._reader.run(_find, missing.model.row.pk, missing.case.pk, missing.attempt)

    async def store(self, missing: MissingResponse, episode: Episode, totals: ResponseTotals) -> None:
        """Store the state of an episode after a turn, in the place of the one before."""
        row = EpisodeCheckpoint(
            run_environment_id=missing.environment.row.pk,
            run_model_id=missing.model.row.pk,
            case_id=missing.case.pk,
            attempt=missing.attempt,
            state=storable(deepcopy(episode.state)),  # the episode continues while it is written
            totals=storable(totals_json(totals)),
        )
        await self._writer.put(StoredTurn(row, shard_id=missing.block.shard_id))


def response_folder(run_model_id: int, case_id: int, attempt: int) -> str:
    """Return the folder of the episode of a response in the storage of snapshots."""
    return f"{RESPONSES}/{run_model_id}-{case_id}-{attempt}"


def snapshot_folder(missing: MissingResponse) -> str:
    """Return the folder of a missing response's episode in the storage of snapshots."""
    return response_folder(missing.model.row.pk, missing.case.pk, missing.attempt)


def totals_json(totals: ResponseTotals) -> dict[str, JSON]:
    """Return *totals* as JSON, to be stored with a checkpoint."""
    last = totals.last
    return {
        "seconds_left": totals.seconds_left,
        "usage": asdict(totals.usage),
        "cost_usd": totals.cost_usd,
        "role_cost_usd": totals.role_cost_usd,
        "latency_ms": totals.latency_ms,
        "last": None
        if last is None
        else {
            "finish_reason": last.finish_reason,
            "served_model": last.served_model,
            "request_id": last.request_id,
        },
    }


def restore_totals(totals: ResponseTotals, stored: Mapping[str, JSON]) -> None:
    """Set *totals* to what `totals_json` returned."""
    values = cast(Mapping[str, float | None], stored)
    totals.seconds_left = float(values["seconds_left"] or 0.0)
    totals.usage = Usage(**cast(dict[str, int], stored["usage"]))
    totals.cost_usd, totals.role_cost_usd = values["cost_usd"], values["role_cost_usd"]
    totals.latency_ms = values["latency_ms"]
    if last := cast(dict[str, str] | None, stored["last"]):
        totals.last = Reply(message={"role": "assistant", "content": ""}, **last)  # type: ignore[arg-type]


def _find(run_model_id: int, case_id: int, attempt: int) -> EpisodeCheckpoint | None:
    return EpisodeCheckpoint.objects.filter(run_model_id=run_model_id, case_id=case_id, attempt=attempt).first()
