"""Compares the server's own parser with ours on the same generation.

The server reports the model's output token by token if asked for `logprobs`; its own parser has read the same tokens. A
case is generated once until the two readings diverge.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from callwright.dialects.base import get_dialect
from callwright.errors import UpstreamError
from callwright.eval.ask import Answered, Asker, ModelAsker
from callwright.eval.wires import Body, WireAsker, Written
from callwright.tolerant_json.codec import encode
from callwright.turn.model import Model
from callwright.upstreams.base import FinishDelta, TextDelta
from callwright.upstreams.simulated.scripted import ScriptedUpstream

# Request fields that make the server report the raw output.
TELLING: Final[Mapping[str, Any]] = {"logprobs": True}


class _Generation(Struct):
    """An answer in progress, and the number of its readers."""

    task: "asyncio.Task[tuple[Answered, Written | None]]"
    waiting: int = 0
    taken: int = 0


class SameOutputs:
    """The raw outputs of a server's model, shared by several readers. `server` sends `TELLING`."""

    def __init__(self, server: WireAsker, today: str) -> None:
        self._server = server
        self._today = today
        self._generations: dict[bytes, _Generation] = {}
        self._readers: list[Asker] = []

    def own(self) -> Asker:
        """The result of the server's parser."""
        self._readers.append(_OwnReading(self))
        return self._readers[-1]

    def ours(self, dialect: str) -> Asker:
        """The result of our parser for a dialect, validated, without retries."""
        self._readers.append(_OurReading(self, dialect, self._today))
        return self._readers[-1]

    async def answer(self, body: Body, label: str) -> tuple[Answered, Written | None]:
        """The server's answer, with the raw output. Requested once for all readers. Raises as `Asker.ask`."""
        key = encode(body)
        found = self._generations.get(key)
        if found is None:
            found = _Generation(asyncio.create_task(self._server.ask_for_written(body, label)))
            self._generations[key] = found
        found.waiting += 1
        is_whole = False
        try:
            answer = await asyncio.shield(found.task)
            is_whole = True
            return answer
        finally:
            found.waiting -= 1
            found.taken += 1
            is_last = found.taken == sum(not reader.lacks(body) for reader in self._readers)
            if (is_last or not is_whole) and self._generations.get(key) is found:
                del self._generations[key]
            if not found.waiting:
                found.task.cancel()  # no way waits for it any more; a no-op if it is done

    def lacks(self, body: Body) -> str:
        """Name the part of a chat body that cannot be asked, see `Asker`."""
        return self._server.lacks(body)

    async def close(self) -> None:
        """Close connections."""
        await self._server.close()


class _OwnReading:
    """An `Asker`: the result of the server's parser."""

    def __init__(self, outputs: SameOutputs) -> None:
        self._outputs = outputs

    async def ask(self, body: Body, label: str) -> Answered:
        answered, _ = await self._outputs.answer(body, label)
        return answered

    def lacks(self, body: Body) -> str:
        return self._outputs.lacks(body)

    async def close(self) -> None:
        await self._outputs.close()


class _OurReading:
    """An `Asker`: the result of a dialect's reader."""

    def __init__(self, outputs: SameOutputs, dialect: str, today: str) -> None:
        self._outputs = outputs
        self._dialect = get_dialect(dialect)
        self._today = today

    async def ask(self, body: Body, label: str) -> Answered:
        """See `Asker`. Raises `UpstreamError` also if the server does not report the raw output."""
        answered, written = await self._outputs.answer(body, label)
        if written is None:
            raise UpstreamError(
                "The server does not return the model's output: its answer has no logprobs.",
                fault="protocol",
                upstream=self._dialect.name,
            )
        # Some servers also report the token that ended the answer.
        end = next((stop for stop in self._dialect.stops if written.text.endswith(stop)), "")
        upstream = ScriptedUpstream([[TextDelta(written.text.removesuffix(end)), FinishDelta(written.ended)]])
        model = Model(
            name=self._dialect.name,
            upstream=upstream,
            upstream_model=self._dialect.name,
            mode="raw",
            dialect=self._dialect.name,
            retries=0,
            ask_ambiguous=False,
        )
        read = await ModelAsker(model, self._today).ask(body, label)
        return replace(read, seconds=answered.seconds, first_s=None, usage=answered.usage)

    def lacks(self, body: Body) -> str:
        """See `Asker`. For required calls, servers make the model write a format of their own."""
        choice = body.get("tool_choice")
        is_free = choice in (None, "auto", "none")
        return self._outputs.lacks(body) if is_free else "tool_choice"

    async def close(self) -> None:
        await self._outputs.close()
