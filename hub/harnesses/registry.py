"""Every harness by its type. To add one: a file in this folder and a line here."""

from hub.harnesses.base import Harness
from hub.harnesses.code_repair import CodeRepair
from hub.harnesses.custom import Custom
from hub.harnesses.multi_turn import MultiTurn
from hub.harnesses.single_turn import SingleTurn
from hub.harnesses.tools import Tools

HARNESSES: dict[str, Harness] = {
    harness.type: harness for harness in (SingleTurn(), MultiTurn(), Tools(), CodeRepair(), Custom())
}
