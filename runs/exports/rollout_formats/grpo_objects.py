"""`grpo-objects`: as `grpo`, with arguments of tool calls as objects, as most chat templates expect them."""

from runs.exports.rollout_formats.grpo import RolloutGrpo


class RolloutGrpoObjects(RolloutGrpo):
    name = "grpo-objects"
    summary = "as grpo, with arguments of tool calls as objects instead of JSON text"
    argument_objects = True
