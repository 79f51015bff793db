"""Registry of scorers by type. To add one: a module in this folder and a section in docs/scorers.md."""

from hub.common.registry import Registry
from hub.scorers.base import Scorer, ScorerOptions

SCORERS: Registry[Scorer[ScorerOptions]] = Registry(
    "rule", Scorer, package="hub.scorers", attribute="type", create=True
)
