"""Every harness by its type. To add one: a file in this folder and a line here."""

from hub.harnesses.base import Harness
from hub.harnesses.single_turn import SingleTurn

HARNESSES: dict[str, Harness] = {harness.type: harness for harness in (SingleTurn(),)}
