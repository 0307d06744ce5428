"""A simulated model: no weights, no network, the same answer to the same request.

Its answers are in the dialect, or in the form of a chat server, as the request is. It can be configured to misbehave
like real models and servers, and to make random calls if its answer is constrained.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from random import Random
from typing import Final, TypeAlias, TypeVar

from callwright.constraints.shape import reasoning_opener
from callwright.conversation import AssistantTurn, CallOutput, Message
from callwright.dialects.base import get_dialect
from callwright.errors import UpstreamError
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
from callwright.upstreams.simulated.faults import Failure, Faults, SimulatedFault
from callwright.upstreams.simulated.filling import arguments_of
from callwright.upstreams.simulated.other_endpoints import answered
from callwright.upstreams.simulated.sampled import allows, sampled_turn
from callwright.upstreams.simulated.scripted import LocalUpstream

T = TypeVar("T")
Told: TypeAlias = Callable[[GenerationRequest, Sequence[str]], None]

_LONG: Final = 16_384  # characters and items of a conversation that is read in a thread
_MANY: Final = 100
_TOKEN: Final = 4  # characters of a piece of text
_FAILS_AFTER: Final = 3  # pieces before a server fails in the middle
_DRAWS: Final = 16  # some values are written in a way of their own, which a grammar does not know


class SimulatedUpstream(LocalUpstream):
    """Answers like a model server. Samples of `faults` are drawn by the request's `seed` or else by its number. `told`
    is called with each request and the names of the faults that changed its answer, before that starts.
    """

    name = "simulated"

    def __init__(self, faults: Faults | None = None, *, told: Told = lambda _, __: None) -> None:
        self._faults = faults or Faults()
        self._told = told
        self._asked = 0

    async def stream(self, generation: GenerationRequest) -> Deltas:
        # A choice of words leaves no room for faults.
        faults = () if _words(generation) else self._faults.choose(generation.dialect or "")
        failing = next((fault for fault in faults if fault.failure), None)
        struck = [failing.name] if failing else []
        failure = failing.failure if failing else None
        if failure and not failure.late:
            self._told(generation, struck)
            await self._fail(failure)
        self._asked += 1
        number = self._asked

        def thought() -> tuple[AssistantTurn, list[Delta]]:
            meant = self._choose_answer(generation, number)
            return meant, _deltas(generation, meant, faults, struck)

        meant, deltas = await asyncio.to_thread(thought) if _is_slow(generation) else thought()
        self._told(generation, struck)
        limit = generation.fields.get("max_completion_tokens") or generation.fields.get("max_tokens") or len(deltas)
        async for piece in self._paced(deltas[:limit], failure):
            yield piece
        text = generation.prompt.text if generation.prompt else encode(generation.messages).decode()
        counted = Usage(
            prompt_tokens=max(1, len(text) // _TOKEN),
            completion_tokens=min(limit, len(deltas)),
            reasoning_tokens=_reasoning_tokens(deltas[:limit], meant.reasoning or ""),
        )
        yield [FinishDelta("length" if limit < len(deltas) else "stop"), counted]

    async def hand_on(self, generation: GenerationRequest, path: str) -> HandedAnswers:
        failure = next((fault.failure for fault in self._faults.choose("") if fault.failure), None)
        if failure and not failure.late:
            await self._fail(failure)
        answers, counted = await asyncio.to_thread(answered, path, generation)
        async for piece in self._paced(answers, failure):
            yield piece
        yield [counted]

    def _choose_answer(self, generation: GenerationRequest, number: int) -> AssistantTurn:
        """The answer to the request of this number."""
        constraint, seed = generation.constraint, generation.fields.get("seed")
        if words := _words(generation):
            return chosen_word(words, generation.conversation)
        if constraint is None or not self._faults.samples:
            return answer(generation.conversation)
        chooser = Random(f"{number if seed is None else seed}")
        for _ in range(_DRAWS):
            turn = sampled_turn(constraint, chooser, lambda tool: arguments_of(tool.parameters or {}, "")[0])
            if allows(constraint, _write_output(generation, constraint.dialect, turn)):
                break
        return turn

    async def _paced(self, pieces: Iterable[T], failure: Failure | None) -> AsyncGenerator[list[T], None]:
        """The pieces of an answer one by one, until the server fails."""
        for number, piece in enumerate(pieces):
            if failure and number == _FAILS_AFTER:
                break
            await asyncio.sleep(0)
            yield [piece]
        if failure:
            await self._fail(failure)

    async def _fail(self, failure: Failure) -> None:
        if not failure.words:
            await asyncio.Event().wait()
        message = f"The upstream {self.name} {failure.words}."
        raise UpstreamError(message, fault=failure.fault, upstream=self.name, status=failure.status)


def _words(generation: GenerationRequest) -> Sequence[str]:
    """The words of which the answer has to be one, if the request has such."""
    form = generation.constraint.form if generation.constraint is not None else None
    return form.words if form is not None else ()


def _is_slow(generation: GenerationRequest) -> bool:
    """Whether an answer may take long: texts of grammars, or much to read."""
    conversation = generation.conversation
    if generation.constraint is not None or any(tool.custom is not None for tool in conversation.tools):
        return True
    texts = (item.text for item in conversation.items if isinstance(item, Message | CallOutput))
    return len(conversation.items) > _MANY or sum(map(len, texts)) > _LONG


def _deltas(
    generation: GenerationRequest, turn: AssistantTurn, faults: Sequence[SimulatedFault], struck: list[str]
) -> list[Delta]:
    """The whole answer in pieces, as the server would send it; the names of the faults that changed it in `struck`."""
    for fault in faults:
        if fault.meaning and (changed := fault.meaning(turn, generation.conversation)) != turn:
            struck.append(fault.name)
            turn = changed
    if generation.dialect is None:
        return _native(turn)
    text = _write_output(generation, generation.dialect, turn)
    for fault in faults:
        if fault.writing and (rewritten := fault.writing(text)) != text:
            struck.append(fault.name)
            text = rewritten
    return [TextDelta(piece) for piece in _pieces(text)]


def _write_output(generation: GenerationRequest, dialect: str, turn: AssistantTurn) -> str:
    """The part of an answer that the prompt does not contain, up to the first stop sequence, as from an engine."""
    prompt = generation.prompt
    if prompt and prompt.prefill:  # the prompt ends in the call: no text before it
        turn = AssistantTurn(calls=turn.calls)
    text = get_dialect(dialect).write(turn)
    text = text[: min((text.index(stop) + len(stop) for stop in generation.stops if stop in text), default=None)]
    text = text.removeprefix(prompt.prefill) if prompt else text
    return text.removeprefix(reasoning_opener(dialect)) if prompt and prompt.start == "reasoning" else text


def _native(turn: AssistantTurn) -> list[Delta]:
    deltas: list[Delta] = [ReasoningTextDelta(piece) for piece in _pieces(turn.reasoning or "")]
    deltas += [TextDelta(piece) for piece in _pieces(turn.text)]
    for index, call in enumerate(turn.calls):
        digest = hashlib.blake2s(call.arguments.encode(), digest_size=6).hexdigest()
        deltas.append(ToolCallDelta(index, id=f"call_{index}_{digest}", name=call.name))
        deltas += [ToolCallDelta(index, arguments=piece) for piece in _pieces(call.arguments)]
    return deltas


def _pieces(text: str) -> list[str]:
    return [text[at : at + _TOKEN] for at in range(0, len(text), _TOKEN)]


def _reasoning_tokens(deltas: Sequence[Delta], reasoning: str) -> int:
    """The number of the pieces that hold reasoning, or a part of it."""
    text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta | ReasoningTextDelta))
    begin = text.find(reasoning[:_TOKEN]) if reasoning else -1
    return 0 if begin < 0 else len(_pieces(text[begin : begin + len(reasoning)]))
