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
from callwright.upstreams.simulated.faults import Faults, SimulatedFault
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
# The faults of servers before the first byte, and in the middle of the answer.
_REFUSALS: Final[dict[str, tuple[str, UpstreamFault, int | None]]] = {
    "error_500": ("answered 500: internal error", "status", 500),
    "html": ("answered text/html instead of events: Bad gateway", "protocol", None),
    "silent": ("", "status", None),
}
_BREAKS: Final[dict[str, tuple[str, UpstreamFault, int | None]]] = {
    "cut_stream": ("closed the connection in the middle of its answer", "cut", None),
    "error_event": ("reports an error: the engine has crashed", "status", None),
}


class SimulatedUpstream(LocalUpstream):
    """Answers like a model server. `token_s`: seconds between two pieces of text. Samples of `faults` are drawn by the
    request's `seed` or else by its number. `told` is called with each request and the names of the faults that changed
    its answer, before that starts.
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
        # A choice of words leaves no room for faults.
        faults = () if _words(generation) else self._faults.choose(generation.dialect or "")
        server = next((fault.name for fault in faults if fault.server), "")
        if server in _REFUSALS:
            self._told(generation, [server])
            await self._fail(_REFUSALS, server)
        self._asked += 1
        number = self._asked

        def thought() -> tuple[AssistantTurn, list[Delta], list[str]]:
            meant = self._choose_answer(generation, number)
            return meant, *_deltas(generation, meant, faults)

        meant, deltas, struck = await asyncio.to_thread(thought) if _is_slow(generation) else thought()
        self._told(generation, [*([server] if server else []), *struck])
        limit = generation.fields.get("max_completion_tokens") or generation.fields.get("max_tokens") or len(deltas)
        async for piece in self._paced(deltas[:limit], server):
            yield piece
        text = generation.prompt.text if generation.prompt else encode(generation.messages).decode()
        counted = Usage(
            prompt_tokens=max(1, len(text) // _TOKEN),
            completion_tokens=min(limit, len(deltas)),
            reasoning_tokens=_reasoning_tokens(deltas, limit, meant.reasoning or ""),
        )
        yield [FinishDelta("length" if limit < len(deltas) else "stop"), counted]

    async def hand_on(self, generation: GenerationRequest, path: str) -> HandedAnswers:
        server = next((fault.name for fault in self._faults.choose("") if fault.server), "")
        await self._fail(_REFUSALS, server)
        answers, counted = await asyncio.to_thread(answered, path, generation)
        async for piece in self._paced(answers, server):
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
            text = _write_output(generation, constraint.dialect, turn)
            if allows(constraint, _after_prompt(generation, constraint.dialect, text)):
                break
        return turn

    async def _paced(self, pieces: Iterable[T], server: str) -> AsyncGenerator[list[T], None]:
        """The pieces of an answer one by one, until the server fails."""
        for number, piece in enumerate(pieces):
            if number == _FAILS_AFTER:
                await self._fail(_BREAKS, server)
            await asyncio.sleep(self._token_s)
            yield [piece]
        await self._fail(_BREAKS, server)

    async def _fail(self, faults: dict[str, tuple[str, UpstreamFault, int | None]], server: str) -> None:
        if server not in faults:
            return
        what, fault, status = faults[server]
        if server == "silent":
            await asyncio.Event().wait()
        raise UpstreamError(f"The upstream {self.name} {what}.", fault=fault, upstream=self.name, status=status)


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
    return sum(map(len, texts)) > _LONG or len(conversation.items) > _MANY


def _deltas(
    generation: GenerationRequest, turn: AssistantTurn, faults: Sequence[SimulatedFault]
) -> tuple[list[Delta], list[str]]:
    """The whole answer in pieces, as the server would send it, and the names of the faults that changed it."""
    struck: list[str] = []
    for fault in faults:
        if fault.meaning and (changed := fault.meaning(turn, generation.conversation)) != turn:
            struck.append(fault.name)
            turn = changed
    if generation.dialect is None:
        return _native(turn), struck
    text = _write_output(generation, generation.dialect, turn)
    for fault in faults:
        if fault.writing and (rewritten := fault.writing(text)) != text:
            struck.append(fault.name)
            text = rewritten
    return [TextDelta(piece) for piece in _pieces(_after_prompt(generation, generation.dialect, text))], struck


def _write_output(generation: GenerationRequest, dialect: str, turn: AssistantTurn) -> str:
    """The whole answer, up to the first stop sequence, as from an engine."""
    if generation.prompt and generation.prompt.prefill:  # the prompt ends in the call: no text before it
        turn = AssistantTurn(calls=turn.calls)
    text = get_dialect(dialect).write(turn)
    return text[: min((text.index(stop) + len(stop) for stop in generation.stops if stop in text), default=None)]


def _after_prompt(generation: GenerationRequest, dialect: str, text: str) -> str:
    """The part of it that the prompt does not contain."""
    prompt = generation.prompt
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


def _reasoning_tokens(deltas: Sequence[Delta], sent: int, reasoning: str) -> int:
    """The number of the pieces sent that hold reasoning, or a part of it."""
    if deltas and isinstance(deltas[0], ReasoningTextDelta):
        return sum(isinstance(delta, ReasoningTextDelta) for delta in deltas[:sent])
    text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    begin = text.find(reasoning) if reasoning else -1
    return 0 if begin < 0 else len(range(begin // _TOKEN, min(sent, -(-(begin + len(reasoning)) // _TOKEN))))
