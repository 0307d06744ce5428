"""Several servers of one model as one upstream: load balancing, session affinity and failover.

A request goes to the server that has the conversation in its prefix cache, or that has the fewest requests in flight.
As long as no delta was passed on, a server that cannot be reached, breaks off or is overloaded is replaced by the next;
if none is left, the last error is raised as it is.

A server that fails again and again rests (a circuit breaker). Then it must list its models, then gets one request on
trial, and if it answers that it counts as well again. If all servers rest, they are asked all the same.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final, TypeAlias, TypeVar

from callwright.errors import RequestError, UpstreamError
from callwright.upstreams.affinity import affinity_key, fair_share, score
from callwright.upstreams.base import Deltas, GenerationRequest, HandedAnswers, Upstream
from callwright.upstreams.timings import ServerState

T = TypeVar("T")
Batches: TypeAlias = AsyncGenerator[Sequence[T], None]

# After this many failures in a row a server rests; the rest doubles with each further failure.
_FAILURES: Final = 3
_REST_S: Final = 2.0
_LONGEST_REST_S: Final = 60.0
_TOO_MANY: Final = 429
_OVERLOADED: Final = (502, 503, 504)
_BROKEN_FROM: Final = 500


def _may_do_elsewhere(error: UpstreamError) -> bool:
    """Whether another server may answer what this one did not."""
    return error.fault in ("unreachable", "cut") or error.status in (_TOO_MANY, *_OVERLOADED)


def _is_broken(error: UpstreamError) -> bool:
    """Whether the server is at fault, not the request or the load."""
    return error.fault in ("unreachable", "cut", "timeout", "protocol") or (error.status or 0) >= _BROKEN_FROM


class _Member:
    """One server and its state. `clock` answers seconds."""

    def __init__(self, upstream: Upstream, clock: Callable[[], float]) -> None:
        self.upstream = upstream
        self.in_flight = 0
        self.latest = 0  # the number of its latest request, counted over all servers
        self.is_ready = False  # it has rested and listed its models
        self.on_trial = False
        self._clock = clock
        self._failures = 0
        self._rests_until = 0.0

    @property
    def is_well(self) -> bool:
        return self._failures < _FAILURES

    @property
    def has_rested(self) -> bool:
        return not self.is_well and self._clock() >= self._rests_until

    def did_well(self) -> None:
        self._failures, self.is_ready = 0, False

    def failed(self) -> None:
        self._failures += 1
        self.is_ready = False
        rest_s = min(_LONGEST_REST_S, _REST_S * 2.0 ** max(0, self._failures - _FAILURES))
        self._rests_until = self._clock() + rest_s


class Pool:
    """An upstream that distributes requests over several. `keeps`: session affinity is on."""

    def __init__(
        self, upstreams: Sequence[Upstream], clock: Callable[[], float] = time.monotonic, *, keeps: bool = True
    ) -> None:
        self._members = [_Member(upstream, clock) for upstream in upstreams]
        self._keeps = keeps
        self._numbers = itertools.count(1)
        self._probes: dict[_Member, asyncio.Task[None]] = {}

    @property
    def name(self) -> str:
        """The names of all servers."""
        return ", ".join(member.upstream.name for member in self._members)

    def states(self) -> list[ServerState]:
        """The state of each server now."""
        return [ServerState(member.upstream.name, member.is_well, member.in_flight) for member in self._members]

    async def open(self) -> None:
        """Open all servers."""
        for member in self._members:
            await member.upstream.open()

    def stream(self, generation: GenerationRequest) -> Deltas:
        return self._anywhere(generation, lambda server: server.stream(generation))

    def hand_on(self, generation: GenerationRequest, path: str) -> HandedAnswers:
        return self._anywhere(generation, lambda server: server.hand_on(generation, path))

    async def _anywhere(self, generation: GenerationRequest, ask: Callable[[Upstream], Batches[T]]) -> Batches[T]:
        """The answer of the first server that is available."""
        left = list(self._members)
        key = affinity_key(generation) if self._keeps else None
        timings = generation.timings
        if timings is not None:
            timings.states = self.states
        while True:
            member = self._chosen(left, key)
            left.remove(member)
            begun = False
            if timings is not None:
                timings.servers += 1
            try:
                async with aclosing(self._ask_member(member, ask)) as deltas:
                    async for batch in deltas:
                        begun = True
                        yield batch
                return
            except UpstreamError as error:
                if begun or not left or not _may_do_elsewhere(error):
                    raise

    async def models(self) -> list[str]:
        """The models of the first server that lists any. Raises `UpstreamError` if none does."""
        left = sorted(self._members, key=lambda member: not member.is_well)
        while True:
            try:
                return await left.pop(0).upstream.models()
            except UpstreamError:
                if not left:
                    raise

    def window(self, model: str) -> int | None:
        """The smallest of the windows that are known."""
        known = (member.upstream.window(model) for member in self._members)
        return min((window for window in known if window is not None), default=None)

    async def close(self) -> None:
        """Close all servers."""
        for probe in self._probes.values():
            probe.cancel()
        await asyncio.gather(*self._probes.values(), return_exceptions=True)
        for member in self._members:
            await member.upstream.close()

    async def _ask_member(self, member: _Member, ask: Callable[[Upstream], Batches[T]]) -> Batches[T]:
        """What one server answers; how they end decides its state."""
        is_trial = not member.is_well
        member.in_flight += 1
        member.latest = next(self._numbers)
        member.on_trial = member.on_trial or is_trial
        try:
            async with aclosing(ask(member.upstream)) as deltas:
                async for batch in deltas:
                    yield batch
            member.did_well()
        except RequestError:
            member.did_well()
            raise
        except UpstreamError as error:
            if _is_broken(error):
                member.failed()
            raise
        finally:
            member.in_flight -= 1
            if is_trial:
                member.on_trial = False

    def _chosen(self, left: Sequence[_Member], key: bytes | None) -> _Member:
        for member in left:
            if member.has_rested and not member.is_ready and member not in self._probes:
                self._probes[member] = asyncio.create_task(self._probe(member))
        on_trial = [member for member in left if member.is_ready and not member.on_trial]
        well = [member for member in left if member.is_well]
        if key is not None and well and not on_trial:
            share = fair_share(sum(member.in_flight for member in well), len(well))
            well = [member for member in well if member.in_flight < share]
            return max(well, key=lambda member: score(key, member.upstream.name))
        return min(on_trial[:1] or well or left, key=lambda member: (member.in_flight, member.latest))

    async def _probe(self, member: _Member) -> None:
        """Find out whether a server that has rested is back."""
        try:
            await member.upstream.models()
            member.is_ready = True
        except UpstreamError as error:
            member.is_ready = error.fault == "status" and not _is_broken(error)
            if not member.is_ready:
                member.failed()
        finally:
            del self._probes[member]
