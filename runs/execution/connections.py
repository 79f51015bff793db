"""Connections to models: one place that creates providers, and counts the errors after which a model is stopped."""

import asyncio
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.conf import settings

from hub.common import digests
from hub.protocols.calls import TOO_LONG, ModelError
from runs.limits.limiter import EndpointLimiter, shared_back_end
from runs.limits.shares import LocalShares
from runs.providers.base import DEFAULT_RETRIES, ModelSpec, Provider, ProviderContext, ProviderOptions
from runs.providers.registry import PROVIDERS

# Request ids and the like: a word of ten characters and more with a digit in it.
_IDENTIFIER = re.compile(r"\b(?=[\w-]*\d)[\w-]{10,}")


@dataclass(slots=True)
class Connection:
    """Model that a run or an episode calls, with everything that its calls share.

    limiter: limits the calls in flight and per minute. stopped: the error after which the model is no longer called, if
    any. A model is stopped by an error that every other call would meet too, and after `identical_errors` errors of the
    same kind and text in a row (0: never). run_model_id: primary key of its RunModel; 0 in an episode of a trainer.
    """

    label: str
    spec: ModelSpec
    provider: Provider[ProviderOptions]
    fingerprint: str
    limiter: EndpointLimiter
    identical_errors: int = 0
    run_model_id: int = 0
    stopped: ModelError | None = None
    _last: tuple[str, str] = ("", "")
    _in_row: int = 0

    def replied(self) -> None:
        """Record that a reply arrived. Errors are counted from zero again."""
        self._last, self._in_row = ("", ""), 0

    def failed(self, error: ModelError) -> ModelError:
        """Count *error* and return the error to raise: itself, or one with the reason that stops the model.

        Either has the tokens and the cost of *error*.
        """
        same = (error.kind, _IDENTIFIER.sub("#", str(error)))
        self._in_row = self._in_row + 1 if same == self._last else 1
        self._last = same
        if self.stopped is not None:
            return error
        if not error.fatal and not 0 < self.identical_errors <= self._in_row:
            return error
        kind, reason = error.kind, str(error)
        if not error.fatal:
            # The reason is also the error of calls that wait at the moment, and their conversations may be short.
            kind = "http" if kind == TOO_LONG else kind
            times = f"{self._in_row} times in a row" if self._in_row > 1 else "once"
            reason = (
                f"The same error occurred {times}, the limit of limits.identical_errors. Fix the cause, then resume "
                f"the run. {error}"
            )
        self.stopped = ModelError(kind, reason, fatal=True)  # without the cost of this call
        return ModelError(kind, reason, fatal=True, usage=error.usage, cost_usd=error.cost_usd)

    def is_stopped_by(self, error: ModelError) -> bool:
        """Return whether *error* has the reason why the model is no longer called."""
        return self.stopped is not None and str(error) == str(self.stopped)


def connect(
    spec: ModelSpec,
    *,
    concurrency: int,
    retries: int = DEFAULT_RETRIES,
    identical_errors: int = 0,
    run_model_id: int = 0,
    only_environment: str = "",
) -> Connection:
    """Return a connection to the model *spec*, for the running event loop. Its key comes from the environment.

    concurrency: calls in flight, together with everybody else who calls this model at its endpoint. retries: of one
    failed call. only_environment: see ProviderContext.
    """
    provider = PROVIDERS[spec.provider]
    options = provider.Options.model_validate(spec.options)
    key_variable = getattr(options, "api_key_env", None)
    context = ProviderContext(
        retries=retries,
        api_key=settings.ENV.lookup(key_variable) if key_variable else None,
        only_environment=only_environment,
    )
    # Replies of recordings come from this process alone.
    limiter = EndpointLimiter(
        shared_back_end() if provider.live else LocalShares(time.monotonic),
        digests.digest([spec.provider, provider.identity(options)]),
        concurrency,
        spec.requests_per_minute if provider.live else None,
        spec.tokens_per_minute if provider.live else None,
    )
    context = replace(context, observe=limiter.observe, wait_for_retry=limiter.wait_for_retry)
    return Connection(
        label=spec.name,
        spec=spec,
        provider=provider(spec, options, context),
        fingerprint=provider.fingerprint(spec, options),
        limiter=limiter,
        identical_errors=identical_errors,
        run_model_id=run_model_id,
    )


async def close_all(connections: Iterable[Connection]) -> None:
    """Close *connections*. Errors are ignored: nothing is sent over them any more."""
    closing = [part.aclose() for connection in connections for part in (connection.provider, connection.limiter)]
    await asyncio.gather(*closing, return_exceptions=True)
