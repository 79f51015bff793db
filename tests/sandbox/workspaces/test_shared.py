"""Calls of engines from asyncio."""

import asyncio
import threading
from unittest.mock import Mock

import pytest

from sandbox.workspaces.base import Handle, WorkspaceEngine
from sandbox.workspaces.shared import open_in_thread
from tests.processes import wait_until

BOX = Handle(host="host", id="box", generation="1", image="image")


def test_box_that_opens_while_its_caller_is_cancelled_is_closed() -> None:
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
        cancelled.set()

    asyncio.run(cancel())
    wait_until(lambda: engine.close.called)
    engine.close.assert_called_once_with(BOX)
