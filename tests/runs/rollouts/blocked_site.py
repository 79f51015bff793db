"""The site as a WSGI application, with steps of episodes that last until the file LLMEVAL_TEST_GATE exists."""

import asyncio
import os
from pathlib import Path

from hub.environments.episodes import Episode, Step
from hub.protocols.messages import Message
from llmeval_site.wsgi import application
from runs.rollouts import steps

__all__ = ["application"]


async def wait_for_gate(episode: Episode, message: Message) -> Step:
    while not Path(os.environ["LLMEVAL_TEST_GATE"]).exists():
        await asyncio.sleep(0.05)
    return await episode.step(message)


steps._step = wait_for_gate
