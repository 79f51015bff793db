"""Registry of the formats of rollouts. To add one: a module in this folder and a row in docs/rl.md."""

from hub.common.registry import Registry
from runs.exports.rollout_formats.base import RolloutFormat

ROLLOUT_FORMATS: Registry[RolloutFormat] = Registry(
    "rollout export format",
    RolloutFormat,
    package="runs.exports.rollout_formats",
    attribute="name",
    create=True,
    hyphens=True,
)
