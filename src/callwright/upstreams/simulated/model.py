"""A simulated model: no weights, no network, the same answer to the same request.

What it means to say or call is `callwright.upstreams.simulated.answer`; here it is written in the dialect or in the way
of a chat server, whichever it is asked in. It can be told to misbehave in the ways that real models and servers do
(`callwright.upstreams.simulated.faults`), and to make random calls where its answer is constrained.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, TypeAlias

from callwright.constraints.shape import reasoning_opener
from callwright.conversation import AssistantTurn, CallOutput, Message
from callwright.dialects.base import get_dialect
from callwright.errors import UpstreamError, UpstreamFault
from callwright.events import Usage
from callwright.tolerant_json.codec import encode
from callwright.upstreams.base import (
    Delta,
    Deltas,
    FinishDelta,
    GenerationRequest,
    HandedAnswers,
    ReasoningTextDelta,
    TextDelta,
    ToolCallDelta,
)
from callwright.upstreams.simulated.answer import answer, chosen_word
from callwright.upstreams.simulated.arguments import arguments_of
from callwright.upstreams.simulated.faults import Faults, SimulatedFault
from callwright.upstreams.simulated.other_endpoints import answered
from callwright.upstreams.simulated.sampled import allows, sampled_turn

__all__ = ["SimulatedUpstream", "Told"]

Told: TypeAlias = Callable[[GenerationRequest, Sequence[str]], None]

_LONG: Final = 16_384  # characters of a conversation, and its items, from which on it is read beside the event loop
_MANY: Final = 100
_TOKEN: Final = 4  # characters of text that go out at a time
_FAILS_AFTER: Final = 3  # so many pieces come before a server fails in the middle
_BEFORE: Final = ("silent", "error_500", "html")  # these come before the first byte
_DRAWS: Final = 16  # some values are written in a way of their own, which a grammar does not know


class SimulatedUpstream:
    """Answers like a model server. `token_s`: seconds between two pieces of text. Samples of `faults` are drawn by the
    request's `seed`, or else by its number. `told` is called with each request and the names of the faults that changed
    its answer, before that begins.
    """

    name = "simulated"

    def __init__(
        self,
        faults: Faults | None = None,
        token_s: float = 0.0,
        *,
        told: Told = lambda _, __: None,
    ) -> None:
        self._faults = faults or Faults()
        self._told = told
        self._token_s = token_s
        self._asked = 0

    async def stream(self, generation: GenerationRequest) -> Deltas:
        """See `Upstream`."""
        words = _words(generation)
        faults = () if words else self._faults.choose(generation.dialect or "")  # which a grammar leaves no room for
        failing = next((fault for fault in faults if fault.server), None)
        server = failing.server if failing else ""
        if failing and server in _BEFORE:
            self._told(generation, [failing.name])
        await self._refuse(server)
        self._asked += 1
        number = self._asked

        def thought() -> tuple[AssistantTurn, list[Delta], list[str]]:
            meant = self._meant(generation, number)
            return meant, *_deltas(generation, meant, faults)

        meant, deltas, struck = await asyncio.to_thread(thought) if _is_slow(generation) else thought()
        self._told(generation, [*([failing.name] if failing else []), *struck])
        limit = generation.fields.get("max_completion_tokens") or generation.fields.get("max_tokens") or len(deltas)
        for number, delta in enumerate(deltas[:limit]):
            if number == _FAILS_AFTER:
                await self._fail(server)
            await asyncio.sleep(self._token_s)
            yield [delta]
        await self._fail(server)
        counted = Usage(
            prompt_tokens=_prompt_tokens(generation),
            completion_tokens=min(limit, len(deltas)),
            reasoning_tokens=_reasoning_tokens(deltas, limit, meant.reasoning or ""),
        )
        yield [FinishDelta("length" if limit < len(deltas) else "stop"), counted]

    async def hand_on(self, generation: GenerationRequest, path: str) -> HandedAnswers:
        """See `Upstream`."""
        server = next((fault.server for fault in self._faults.choose("") if fault.server), "")
        await self._refuse(server)
        answers, counted = await asyncio.to_thread(answered, path, generation)
        for number, piece in enumerate(answers):
            if number == _FAILS_AFTER:
                await self._fail(server)
            await asyncio.sleep(self._token_s)
            yield [piece]
        await self._fail(server)
        yield [counted]

    def _meant(self, generation: GenerationRequest, number: int) -> AssistantTurn:
        """What it wants to say or call, as the request of this number."""
        if words := _words(generation):
            return chosen_word(words, generation.conversation)
        if generation.constraint is None or not self._faults.samples:
            return answer(generation.conversation)
        seed = generation.fields.get("seed")
        chooser = Random(f"{number if seed is None else seed}")
        for _ in range(_DRAWS):
            turn = sampled_turn(generation.constraint, chooser, lambda tool: arguments_of(tool.parameters or {}, "")[0])
            if allows(generation.constraint, _text(generation, generation.constraint.dialect, turn)):
                break
        return turn

    async def open(self) -> None:
        """Nothing to make ready."""

    def window(self, model: str) -> int | None:
        """See `Upstream`: it has none."""
        return None

    async def models(self) -> list[str]:
        """None that could be named."""
        return []

    async def close(self) -> None:
        """Nothing to give back."""

    async def _refuse(self, fault: str) -> None:
        """Fail before the first byte, if that is the fault."""
        if fault == "silent":
            await asyncio.Event().wait()
        if fault == "error_500":
            raise self._error("answered 500: internal error", "status", status=500)
        if fault == "html":
            raise self._error("answered text/html instead of events: Bad gateway", "protocol")

    async def _fail(self, fault: str) -> None:
        """Fail in the middle of the answer, if that is the fault."""
        if fault == "cut_stream":
            raise self._error("closed the connection in the middle of its answer", "cut")
        if fault == "error_event":
            raise self._error("reports an error: the engine has crashed", "status")

    def _error(self, what: str, fault: UpstreamFault, status: int | None = None) -> UpstreamError:
        return UpstreamError(f"The upstream {self.name} {what}.", fault=fault, upstream=self.name, status=status)


def _words(generation: GenerationRequest) -> Sequence[str]:
    """The words of which the answer has to be one, if that is asked for."""
    form = generation.constraint.form if generation.constraint is not None else None
    return form.words if form is not None else ()


def _is_slow(generation: GenerationRequest) -> bool:
    """Whether an answer may take longer than others can wait: texts of grammars, or much to read."""
    conversation = generation.conversation
    if generation.constraint is not None or any(tool.custom is not None for tool in conversation.tools):
        return True
    texts = (item.text for item in conversation.items if isinstance(item, Message | CallOutput))
    return sum(map(len, texts)) > _LONG or len(conversation.items) > _MANY


def _deltas(
    generation: GenerationRequest, turn: AssistantTurn, faults: Sequence[SimulatedFault]
) -> tuple[list[Delta], list[str]]:
    """The whole answer in pieces, as the server would send it, and the names of the faults that changed it."""
    struck: list[str] = []
    for fault in faults:
        if fault.meaning and (bent := fault.meaning(turn, generation.conversation)) != turn:
            struck.append(fault.name)
            turn = bent
    if generation.dialect is None:
        return _native(turn), struck
    text = _written(generation, generation.dialect, turn)
    for fault in faults:
        if fault.writing and (written := fault.writing(text)) != text:
            struck.append(fault.name)
            text = written
    return [TextDelta(piece) for piece in _pieces(_behind_prompt(generation, generation.dialect, text))], struck


def _text(generation: GenerationRequest, dialect: str, turn: AssistantTurn) -> str:
    """How it is written behind the prompt."""
    return _behind_prompt(generation, dialect, _written(generation, dialect, turn))


def _written(generation: GenerationRequest, dialect: str, turn: AssistantTurn) -> str:
    """The whole answer, up to where an engine would stop."""
    if generation.prompt and generation.prompt.prefill:  # the prompt ends in the call, so nothing comes before it
        turn = AssistantTurn(calls=turn.calls)
    return _stopped(get_dialect(dialect).write(turn), generation.stops)


def _behind_prompt(generation: GenerationRequest, dialect: str, text: str) -> str:
    """What of it the prompt has not said already."""
    prompt = generation.prompt
    if prompt:
        text = text.removeprefix(prompt.prefill)
        if prompt.start == "reasoning":
            text = text.removeprefix(reasoning_opener(dialect))
    return text


def _native(turn: AssistantTurn) -> list[Delta]:
    deltas: list[Delta] = [ReasoningTextDelta(piece) for piece in _pieces(turn.reasoning or "")]
    deltas += [TextDelta(piece) for piece in _pieces(turn.text)]
    for index, call in enumerate(turn.calls):
        deltas.append(ToolCallDelta(index, id=f"call_{index}_{_digest(call.arguments)}", name=call.name))
        deltas += [ToolCallDelta(index, arguments=piece) for piece in _pieces(call.arguments)]
    return deltas


def _stopped(text: str, stops: Sequence[str]) -> str:
    """The text up to and with the first stop, as an engine would end it."""
    ends = [text.index(stop) + len(stop) for stop in stops if stop in text]
    return text[: min(ends)] if ends else text


def _pieces(text: str) -> list[str]:
    return [text[at : at + _TOKEN] for at in range(0, len(text), _TOKEN)]


def _prompt_tokens(generation: GenerationRequest) -> int:
    text = generation.prompt.text if generation.prompt else encode(generation.messages).decode()
    return max(1, len(text) // _TOKEN)


def _reasoning_tokens(deltas: Sequence[Delta], sent: int, reasoning: str) -> int:
    """How many of the pieces that were sent hold reasoning, or a part of it."""
    if deltas and isinstance(deltas[0], ReasoningTextDelta):
        return sum(isinstance(delta, ReasoningTextDelta) for delta in deltas[:sent])
    text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    begin = text.find(reasoning) if reasoning else -1
    return 0 if begin < 0 else len(range(begin // _TOKEN, min(sent, -(-(begin + len(reasoning)) // _TOKEN))))


def _digest(text: str) -> str:
    return hashlib.blake2s(text.encode(), digest_size=6).hexdigest()
