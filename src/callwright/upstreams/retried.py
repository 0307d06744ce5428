"""An upstream that retries transient failures: unreachable, connection lost, overloaded.

Only until a part of the answer was forwarded: sent events cannot be retracted. The pause is the server's
(`retry-after`), or exponential. If it would exceed the deadline, or the server's is too long, the failure is raised
immediately. Retries use a budget that successful requests refill: a server that is down does not get several requests
from every client.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, TypeVar

from callwright.errors import UpstreamError
from callwright.upstreams.base import Deltas, GenerationRequest, HandedAnswers, Upstream
from callwright.upstreams.wrapped import WrappedUpstream

T = TypeVar("T")

log = logging.getLogger("callwright.upstreams")

# A server that wants more than this is not waited for.
MAX_WAIT_S: Final = 60.0
# 529: Anthropic's word for an overload.
_TRANSIENT: Final = (408, 429, 502, 503, 504, 529)
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 8.0
# Maximum burst of retries, and the fraction of one that each successful request adds.
_BUDGET: Final = 10.0
_REFILL: Final = 0.2


class Retried(WrappedUpstream):
    """An upstream with at most `retries` for each request.

    `deadline_s`: for the whole answer, including pauses. `pause` waits a number of seconds.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        retries: int = 3,
        deadline_s: float | None = None,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        super().__init__(upstream)
        self._retries = retries
        self._deadline_s = deadline_s
        self._pause = pause
        self._budget = _BUDGET

    def stream(self, generation: GenerationRequest) -> Deltas:
        return self._tried(lambda: self._upstream.stream(generation))

    def hand_on(self, generation: GenerationRequest, path: str) -> HandedAnswers:
        return self._tried(lambda: self._upstream.hand_on(generation, path))

    async def _tried(self, ask: Callable[[], AsyncGenerator[Sequence[T], None]]) -> AsyncGenerator[Sequence[T], None]:
        now = asyncio.get_running_loop().time
        end = None if self._deadline_s is None else now() + self._deadline_s
        failures = 0
        while True:
            begun = False
            try:
                async with aclosing(self._until(ask(), end)) as batches:
                    async for batch in batches:
                        begun = True
                        yield batch
                self._budget = min(_BUDGET, self._budget + _REFILL)
                return
            except UpstreamError as error:
                pause_s = self._maybe_pause(error, failures, None if end is None else end - now())
                if begun or pause_s is None:
                    raise
                log.info("%s failed (%s), retried in %.1f s", self.name, error.status or error.fault, pause_s)
            failures += 1
            self._budget -= 1
            await self._pause(pause_s)

    async def _until(
        self, batches: AsyncGenerator[Sequence[T], None], end: float | None
    ) -> AsyncGenerator[Sequence[T], None]:
        """The batches up to the deadline, which does not run in the time of who reads them."""
        async with aclosing(batches):
            while True:
                try:
                    async with asyncio.timeout_at(end) as limit:
                        batch = await anext(batches)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    if not limit.expired():
                        raise
                    raise UpstreamError(
                        f"The upstream at {self.name} did not answer within {self._deadline_s:g} s.",
                        fault="timeout",
                        upstream=self.name,
                    ) from error
                yield batch

    def _maybe_pause(self, error: UpstreamError, failures: int, left_s: float | None) -> float | None:
        """Seconds to wait before the next attempt; None: do not retry."""
        is_transient = error.fault in ("unreachable", "cut") or error.status in _TRANSIENT
        if not is_transient or failures >= self._retries or self._budget < 1:
            return None
        pause_s = _parse_retry_after(error.retry_after_s)
        if pause_s is None:
            longest_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**failures)
            pause_s = longest_s * random.uniform(0.5, 1)  # so that clients do not retry simultaneously
        return None if pause_s > MAX_WAIT_S or (left_s is not None and pause_s >= left_s) else pause_s


def _parse_retry_after(retry_after: str | None) -> float | None:
    """The seconds of a `retry-after`: a number of them, or a date."""
    if retry_after is None:
        return None
    if retry_after.isdigit():
        return float(retry_after)
    return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
