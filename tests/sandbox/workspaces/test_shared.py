"""Calls of engines from asyncio."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from sandbox.workspaces import shared
from sandbox.workspaces.base import Handle, WorkspaceEngine
from sandbox.workspaces.shared import open_in_thread
from tests.processes import wait_until

BOX = Handle(host="host", id="box", generation="1", image="image")


@pytest.mark.parametrize("ending", [False, True], ids=["process-continues", "process-ends"])
def test_box_that_opens_while_its_caller_is_cancelled_is_closed(monkeypatch: pytest.MonkeyPatch, ending: bool) -> None:
    executor = ThreadPoolExecutor(1)
    monkeypatch.setattr(shared, "_executor", executor)
    engine, begun, cancelled = Mock(spec=WorkspaceEngine), threading.Event(), threading.Event()

    def open_slowly() -> Handle:
        begun.set()
        cancelled.wait(20)
        return BOX

    async def cancel() -> None:
        opening = asyncio.create_task(open_in_thread(engine, open_slowly))
        await asyncio.to_thread(begun.wait, 20)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        if ending:
            executor.shutdown(wait=False)  # as at the end of the process: no new calls
        cancelled.set()

    asyncio.run(cancel())
    wait_until(lambda: engine.close.called)
    engine.close.assert_called_once_with(BOX)
