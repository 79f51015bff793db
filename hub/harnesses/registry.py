"""Registry of harnesses by type. To add one: a module in this folder, a line here, a section in docs/harnesses.md."""

from hub.common.registry import Registry
from hub.harnesses.base import Harness, HarnessOptions

HARNESSES: Registry[Harness[HarnessOptions]] = Registry(
    "harness",
    {
        "single_turn": "hub.harnesses.single_turn:SingleTurn",
        "multi_turn": "hub.harnesses.multi_turn:MultiTurn",
        "tools": "hub.harnesses.tools:Tools",
        "code_repair": "hub.harnesses.code_repair:CodeRepair",
        "custom": "hub.harnesses.custom:CustomHarness",
    },
    create=True,
)
