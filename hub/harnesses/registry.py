"""Registry of harnesses by type. To add one: a module in this folder and a section in docs/harnesses.md."""

from hub.common.registry import Registry
from hub.harnesses.base import Harness, HarnessOptions

HARNESSES: Registry[Harness[HarnessOptions]] = Registry(
    "harness", Harness, package="hub.harnesses", attribute="type", create=True
)
