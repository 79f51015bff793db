"""Commands that are ended by a signal."""

import argparse
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from hub.common.output.files import Outputs
from hub.management import base


class _Terminated(base.Command):
    """Command that gets a signal while it writes a file."""

    requires_system_checks = []
    needs_database = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("out", type=Path)
        parser.add_argument("signal", type=int)

    def handle(self, *args: object, out: Path, **options: object) -> None:
        with Outputs() as outputs:
            outputs.file(out).write_text("half")
            signal.raise_signal(cast(int, options["signal"]))


@pytest.fixture
def handlers() -> Iterator[None]:
    """Restore the handlers that commands replace."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_interrupts_a_command_as_ctrl_c_does_and_no_file_is_left(tmp_path: Path, number: signal.Signals) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with pytest.raises(KeyboardInterrupt):
        _Terminated().run_from_argv(["manage.py", "terminated", str(tmp_path / "out"), str(int(number))])
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("handlers")
def test_end_of_the_terminal_is_ignored_under_nohup(tmp_path: Path) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _Terminated().run_from_argv(["manage.py", "terminated", str(tmp_path / "out"), str(int(signal.SIGHUP))])
    assert os.listdir(tmp_path) == ["out"]
