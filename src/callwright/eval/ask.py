"""Asks a model in this process, as the gateway would. One request, one answer; no judgement."""

import time
from contextlib import aclosing
from functools import reduce
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

import callwright
from callwright.errors import UpstreamError
from callwright.events import Event, Usage
from callwright.reading.collect import Turn, collect
from callwright.turn.model import Model
from callwright.turn.observe import Observation
from callwright.turn.records import Record, record_of
from callwright.turn.run import run_turn
from callwright.wire.chat.request import read_request

# Characters of a server's output stored per turn, to be shown for failed cases.
_KEPT_CHARS = 1_000_000


class Answered(Struct, frozen=True):
    """An answer and its cost. `requests`: requests to the server for it, of which `asked_again` were retries because of
    an answer. Times are in seconds; `first_s`: time to the first output; None: unknown. `record`: the whole turn.
    """

    turn: Turn
    seconds: float
    first_s: float | None = None
    usage: Usage | None = None
    requests: int = 1
    asked_again: int = 0
    record: Record | None = None


class Asker(Protocol):
    """Asks one model in one way."""

    async def ask(self, body: dict[str, Any], label: str) -> Answered:
        """Ask with the body of a chat request, without the model; `label` names its record. Raises `UpstreamError` if
        the server fails and `RequestError` if it rejects the request.
        """
        ...

    def lacks(self, body: dict[str, Any]) -> str:
        """Name the part of a body that this way cannot express; empty if it can ask it."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class ModelAsker:
    """Asks a model in this process. `today`: YYYY-MM-DD, for prompts that show the date; `fields` go into each request;
    `streamed`: as for a client that streams.
    """

    def __init__(
        self, model: Model, today: str, fields: dict[str, Any] | None = None, *, streamed: bool = True
    ) -> None:
        self._model = model
        self._streamed = streamed
        self._today = today
        self._fields = fields or {}

    async def ask(self, body: dict[str, Any], label: str) -> Answered:
        """See `Asker`. If the model does not make a required call, it is an answer without a call, not a failure."""
        request = read_request({"model": self._model.name, **self._fields, **body})
        observations: list[Observation] = []

        def observe(seen: Observation) -> None:
            seen.keeps = _KEPT_CHARS
            observations.append(seen)

        model = replace(self._model, observers=(*self._model.observers, observe))
        events: list[Event] = []
        usage: Usage | None = None
        begun_s = time.monotonic()
        try:
            turn = run_turn(model, request.conversation, request.fields, today=self._today, streamed=self._streamed)
            async with aclosing(turn) as batches:
                async for batch in batches:
                    for event in batch:
                        if isinstance(event, Usage):
                            usage = event
                        else:
                            events.append(event)
        except UpstreamError as error:
            if error.fault != "unmet":
                raise
        seen = observations[0]
        return Answered(
            turn=collect(events),
            seconds=time.monotonic() - begun_s,
            first_s=None if seen.first_s is None else seen.first_s - seen.begun_s,
            usage=usage or _sum_usage(seen),
            requests=len(seen.asked),
            asked_again=seen.retries,
            record=record_of(seen, version=callwright.__version__, time=self._today, request_id=label, request=body),
        )

    def lacks(self, body: dict[str, Any]) -> str:
        return ""

    async def close(self) -> None:
        await self._model.close()


def _sum_usage(seen: Observation) -> Usage | None:
    """The server's token counts for a turn of which nothing was sent to the client."""
    told = [delta for asked in seen.asked if asked.raw for _, delta in asked.raw.deltas if isinstance(delta, Usage)]
    return reduce(Usage.plus, told) if told else None
