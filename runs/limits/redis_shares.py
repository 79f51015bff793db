"""Back end that shares limits between workers, on all machines, in Redis."""

import asyncio
import json
import random
from typing import cast

import redis
import redis.asyncio
from redis.exceptions import RedisError

from runs.limits.shares import HOLDER_LIVES_S, Grant, Report, SharesUnavailable, State, grant

_PREFIX = "llmeval:limits:"
_TIMEOUT_S = 1.0
_TRIES = 20
_KEEP_S = 120  # of an endpoint without holders: its rates per minute, and the limit that it accepted

# Both scripts are atomic. Writing succeeds only if nobody has written since the state was read, so that the rules
# (runs/limits/shares.py) exist once, in Python. Redis's clock is the one that all workers share.
_READ = "local t = redis.call('TIME'); return {redis.call('GET', KEYS[1]) or '', t[1], t[2]}"
_WRITE = """
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
"""


class RedisShares:
    """Back end in Redis. One instance per connection and event loop. `renew` raises SharesUnavailable."""

    def __init__(self, url: str) -> None:
        self._client = redis.asyncio.Redis.from_url(
            url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S, decode_responses=True
        )
        self._read = self._client.register_script(_READ)
        self._write = self._client.register_script(_WRITE)

    async def renew(self, key: str, report: Report) -> Grant:
        try:
            return await self._renew(_PREFIX + key, report)
        except (RedisError, OSError) as error:
            raise SharesUnavailable(str(error)) from error

    async def _renew(self, name: str, report: Report) -> Grant:
        for attempt in range(_TRIES):
            stored, seconds, microseconds = cast("tuple[str, str, str]", await self._read(keys=[name]))
            now = int(seconds) + int(microseconds) / 1_000_000
            state: State = json.loads(stored) if stored else State()
            if not any(holder["until"] > now for holder in state.get("holders", {}).values()):
                await self._expect_unknown_holders(state, now)
            granted = grant(state, report, now)
            if await self._write(keys=[name], args=[stored, json.dumps(state), _KEEP_S + int(HOLDER_LIVES_S)]):
                return granted
            await asyncio.sleep(random.uniform(0, 0.002 * (attempt + 1)))  # noqa: S311  # spreads the next tries
        raise SharesUnavailable(f"the limits were changed by other workers {_TRIES} times in a row")

    async def _expect_unknown_holders(self, state: State, now: float) -> None:
        """Make new holders wait if Redis was started lately, until others have reported or have given up their slots.

        Redis may have lost the state, or was unreachable for so long that slots in it lapsed while their holders used
        them.
        """
        server = await self._client.info("server")
        unknown_until = now - float(server["uptime_in_seconds"]) + HOLDER_LIVES_S
        if unknown_until > now:
            state["rebuilt_at"] = max(state.get("rebuilt_at", 0.0), unknown_until)

    async def aclose(self) -> None:
        await self._client.aclose()


def count_held_slots(url: str) -> int:
    """Return the number of slots for requests that all workers hold. Raises RedisError or OSError."""
    with redis.Redis.from_url(
        url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S, decode_responses=True
    ) as client:
        now = float(cast("tuple[int, int]", client.time())[0])
        names = list(client.scan_iter(f"{_PREFIX}*", count=1000))
        values = cast("list[str | None]", client.mget(names)) if names else []
    states = [json.loads(stored) for stored in values if stored]
    holders = [holder for state in states for holder in state.get("holders", {}).values()]
    return sum(int(holder["slots"]) for holder in holders if holder["until"] > now)
