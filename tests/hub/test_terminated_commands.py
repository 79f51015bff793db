"""Commands that are ended by a signal."""

import argparse
import os
import signal
from pathlib import Path

import pytest

from hub.common.output.files import Outputs
from hub.management import base


class _Terminated(base.Command):
    """Command that gets SIGTERM while it writes a file."""

    requires_system_checks = []
    needs_database = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("out", type=Path)

    def handle(self, *args: object, out: Path, **options: object) -> None:
        with Outputs() as outputs:
            outputs.file(out).write_text("half")
            signal.raise_signal(signal.SIGTERM)


def test_sigterm_interrupts_a_command_as_ctrl_c_does_and_no_file_is_left(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt):
            _Terminated().run_from_argv(["manage.py", "terminated", str(tmp_path / "out")])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert os.listdir(tmp_path) == []
