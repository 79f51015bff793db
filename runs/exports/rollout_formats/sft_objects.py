"""`sft-objects`: as `sft`, with arguments of tool calls as objects, as most chat templates expect them."""

from runs.exports.rollout_formats.sft import RolloutSft


class RolloutSftObjects(RolloutSft):
    name = "sft-objects"
    summary = "as sft, with arguments of tool calls as objects instead of JSON text"
    argument_objects = True
