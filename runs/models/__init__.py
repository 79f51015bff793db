"""Database models of runs, by what they describe."""

from runs.models.checkpoints import EpisodeCheckpoint, ModelCall
from runs.models.endpoints import ModelEndpoint, endpoint_name_is_valid
from runs.models.episodes import EpisodeSession
from runs.models.responses import Response, RunResult, Score
from runs.models.runs import (
    ACTIVE,
    ENDED,
    NOTE_LENGTH,
    WITH_RESULTS,
    Run,
    RunEnvironment,
    RunModel,
    RunTag,
    Shard,
    TeamSpend,
)

__all__ = [
    "ACTIVE",
    "ENDED",
    "NOTE_LENGTH",
    "WITH_RESULTS",
    "EpisodeCheckpoint",
    "EpisodeSession",
    "ModelCall",
    "ModelEndpoint",
    "Response",
    "Run",
    "RunEnvironment",
    "RunModel",
    "RunResult",
    "RunTag",
    "Score",
    "Shard",
    "TeamSpend",
    "endpoint_name_is_valid",
]
