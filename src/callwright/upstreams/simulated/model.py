"""A simulated model: no weights, no network, the same answer to the same request.

It picks a tool by the words of the last user message, fills the arguments from the tool's schema and from what the
message says, writes the call in the dialect or in the way of a chat server, whichever it is asked in, and answers
from the outputs. It can be told to misbehave in the ways that real models and servers do
(`callwright.upstreams.simulated.faults`), and to make random calls where its answer is constrained.
"""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from callwright.calls.custom_tools import INPUT
from callwright.constraints.shape import reasoning_opener
from callwright.conversation import (
    AssistantTurn,
    Call,
    Conversation,
    FunctionTool,
    JsonObject,
    Message,
    NamedTool,
    TextPart,
    ToolTurn,
)
from callwright.dialects.base import get_dialect
from callwright.errors import UpstreamError, UpstreamFault
from callwright.events import Usage
from callwright.grammar.grammar import Grammar
from callwright.tolerant_json.codec import encode
from callwright.upstreams.base import (
    Delta,
    Deltas,
    Generation,
    ReasoningText,
    Stopped,
    TextDelta,
    ToolCallDelta,
)
from callwright.upstreams.simulated.faults import Fault, Faults
from callwright.upstreams.simulated.sampled import allows, sampled_turn

__all__ = ["SimulatedUpstream"]

_TOKEN = 4  # characters of text that go out at a time
_FAILS_AFTER = 3  # so many pieces come before a server fails in the middle
_MAX_DEPTH = 8
# A schema may demand more than anybody wants to read, or a number that no machine has.
_MAX_VALUES = 1_000
_MAX_CHARS = 10_000
_MAX_DIGITS = 15
_DRAWS = 16  # some values are written in a way of their own, which a grammar does not know
_NAME_WORTH = 3
_ENOUGH = 2  # a word of the tool's name, or two of its description
_WORD = re.compile(r"[A-Za-z0-9]+")
_NAME_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_QUOTED = re.compile(r"[\"“'`]([^\"”'`]{1,200})[\"”'`]")
_PROPER = re.compile(r"(?<=[a-z,;:] )((?:[A-Z][\w'-]+)(?: [A-Z][\w'-]+)*)")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
_BY_FORMAT: Final = {
    "date": (re.compile(r"\b\d{4}-\d{2}-\d{2}\b"), "2026-01-15"),
    "date-time": (re.compile(r"\b\d{4}-\d{2}-\d{2}T[\d:.]+Z?\b"), "2026-01-15T12:00:00Z"),
    "time": (re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?\b"), "12:00:00Z"),
    "email": (re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.]+\b"), "someone@example.com"),
    "uri": (re.compile(r"\bhttps?://\S+"), "https://example.com/"),
    "uuid": (re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b"), "00000000-0000-4000-8000-000000000000"),
}
_REFUSED: Final = ("Error: this call was not run.", "Error: no call was run.")  # then the model tries again
_STOP_WORDS: Final = frozenset(  # words that say nothing about what is asked for
    "a an and are at be but by can could do does for from get give have how i in is it its let like me my of on or "
    "please show tell that the there this to use was we what when where which who will with would you your".split()
)


class SimulatedUpstream:
    """Answers like a model server. `token_s`: seconds between two pieces of text. `samples`: where a constraint says
    what the answer must look like, it is a random one of those, by the request's `seed` or else by its number.
    """

    name = "simulated"

    def __init__(self, faults: Faults | None = None, token_s: float = 0.0, *, samples: bool = False) -> None:
        self._faults = faults or Faults()
        self._token_s = token_s
        self._samples = samples
        self._asked = 0

    async def stream(self, generation: Generation) -> Deltas:
        """See `Upstream`."""
        faults = self._faults.choose(generation.dialect or "")
        server = next((fault.server for fault in faults if fault.server), "")
        await self._refuse(server)
        meant = self._meant(generation)
        deltas = _deltas(generation, meant, faults)
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
        yield [Stopped("length" if limit < len(deltas) else "stop"), counted]

    def _meant(self, generation: Generation) -> AssistantTurn:
        """What it wants to say or call."""
        self._asked += 1
        if generation.constraint is None or not self._samples:
            return _answer(generation.conversation)
        seed = generation.fields.get("seed")
        chooser = Random(f"{self._asked if seed is None else seed}")
        for _ in range(_DRAWS):
            turn = sampled_turn(
                generation.constraint, chooser, lambda tool: _Filler("").arguments(tool.parameters or {})
            )
            if allows(generation.constraint, _text(generation, generation.constraint.dialect, turn)):
                break
        return turn

    async def open(self) -> None:
        """Nothing to make ready."""

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


def _deltas(generation: Generation, turn: AssistantTurn, faults: Sequence[Fault]) -> list[Delta]:
    """The whole answer in pieces, as the server would send it."""
    for fault in faults:
        if fault.meaning:
            turn = fault.meaning(turn, generation.conversation)
    if generation.dialect is None:
        return _native(turn)
    return [TextDelta(piece) for piece in _pieces(_text(generation, generation.dialect, turn, faults))]


def _text(generation: Generation, dialect: str, turn: AssistantTurn, faults: Sequence[Fault] = ()) -> str:
    """How it is written behind the prompt."""
    prompt = generation.prompt
    if prompt and prompt.prefill:  # the prompt ends in the call, so nothing comes before it
        turn = AssistantTurn(calls=turn.calls)
    text = _stopped(get_dialect(dialect).write(turn), generation.stops)
    for fault in faults:
        if fault.writing:
            text = fault.writing(text)
    if prompt:
        text = text.removeprefix(prompt.prefill)
        if prompt.start == "reasoning":
            text = text.removeprefix(reasoning_opener(dialect))
    return text


def _native(turn: AssistantTurn) -> list[Delta]:
    deltas: list[Delta] = [ReasoningText(piece) for piece in _pieces(turn.reasoning or "")]
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


def _prompt_tokens(generation: Generation) -> int:
    text = generation.prompt.text if generation.prompt else encode(generation.messages).decode()
    return max(1, len(text) // _TOKEN)


def _reasoning_tokens(deltas: Sequence[Delta], sent: int, reasoning: str) -> int:
    """How many of the pieces that were sent hold reasoning, or a part of it."""
    if deltas and isinstance(deltas[0], ReasoningText):
        return sum(isinstance(delta, ReasoningText) for delta in deltas[:sent])
    text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    begin = text.find(reasoning) if reasoning else -1
    return 0 if begin < 0 else len(range(begin // _TOKEN, min(sent, -(-(begin + len(reasoning)) // _TOKEN))))


def _digest(text: str) -> str:
    return hashlib.blake2s(text.encode(), digest_size=6).hexdigest()


# --- what it answers ---


def _answer(conversation: Conversation) -> AssistantTurn:
    turns = conversation.turns()
    last = turns[-1] if turns else None
    refused = isinstance(last, ToolTurn) and any(output.text.startswith(_REFUSED) for _, output in last.outputs)
    if isinstance(last, ToolTurn) and not refused and conversation.tool_choice in ("auto", "none"):
        told = " ".join(f"{name or 'The tool'} says: {output.text}." for name, output in last.outputs)
        return _said(told.replace("..", "."), "The results are in, so I can answer.")
    said = [turn.text for turn in reversed(turns) if isinstance(turn, Message) and turn.role == "user"]
    asked = next((text for text in said if not text.startswith(_REFUSED)), "")
    tool = _pick(conversation, asked)
    if tool is None:
        return _said(_reply(conversation, asked), "No tool is needed here." if conversation.tools else None)
    calls = [
        Call(tool.name, encode(arguments).decode())
        for arguments in _several(tool, asked, conversation.parallel_tool_calls)
    ]
    return AssistantTurn(reasoning=f"The user asks for something that {tool.name} can do.", calls=calls)


def _said(text: str, reasoning: str | None) -> AssistantTurn:
    return AssistantTurn(reasoning, Message("assistant", (TextPart(text),)))


def _reply(conversation: Conversation, asked: str) -> str:
    wanted = conversation.response_format
    if wanted is not None:
        return encode(_Filler(asked).value(wanted.schema or {"type": "object"}, "answer")).decode()
    return f"You said: {asked}" if asked else "Hello! How can I help?"


def _pick(conversation: Conversation, asked: str) -> FunctionTool | None:
    """The tool whose name and description share most words with the message, or the one that is asked for."""
    match conversation.tool_choice:
        case "none":
            return None
        case NamedTool(name):
            return next((tool for tool in conversation.tools if tool.name == name), None)
    words = _words(asked)
    scored = [(_score(tool, words), -number, tool) for number, tool in enumerate(conversation.tools)]
    best = max(scored, key=lambda entry: entry[:2], default=None)
    if best is None or (best[0] < _ENOUGH and conversation.tool_choice != "required"):
        return None
    return best[2]


def _score(tool: FunctionTool, words: frozenset[str]) -> int:
    name = {_stem(part) for part in _NAME_PARTS.findall(tool.name)}
    return _NAME_WORTH * len(name & words) + len(_words(tool.description or "") & words)


def _words(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in _WORD.findall(text) if word.lower() not in _STOP_WORDS)


def _stem(word: str) -> str:
    word = word.lower()
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


def _several(tool: FunctionTool, asked: str, parallel: bool) -> list[dict[str, Any]]:
    """The arguments of each call: one for every proper name, where the tool takes exactly one and calls may be
    parallel.
    """
    if tool.custom is not None and tool.custom.grammar is not None:
        return [{INPUT: _sentence(tool.custom.grammar, asked)}]
    schema = tool.parameters or {}
    required = schema.get("required") or list(schema.get("properties") or ())[:1]
    names = _PROPER.findall(asked)
    if parallel and len(required) == 1 and len(names) > 1:
        match (schema.get("properties") or {}).get(required[0]):
            case {"type": "string"}:
                return [{**_Filler(asked).arguments(schema), required[0]: name} for name in names]
    return [_Filler(asked).arguments(schema)]


def _sentence(grammar: Grammar, asked: str) -> str:
    """A text of the grammar: what the message quotes, if that is one."""
    quoted = next((text for text in _QUOTED.findall(asked) if grammar.accepts(text)), None)
    return quoted if quoted is not None else grammar.sample() or ""


class _Filler:
    """Fills a schema from a message: each value of the message is used once, in order."""

    def __init__(self, asked: str) -> None:
        self._asked = asked
        self._numbers = [text for text in _NUMBER.findall(asked) if len(text) <= _MAX_DIGITS]
        self._left = _MAX_VALUES
        quoted = _QUOTED.findall(asked)
        self._names = quoted + [name for name in _PROPER.findall(asked) if not any(name in text for text in quoted)]
        self._root: JsonObject = {}

    def arguments(self, schema: JsonObject) -> dict[str, Any]:
        """An object with what is required, and what the message speaks of."""
        self._root = self._root or schema
        return self._object(schema, 0)

    def value(self, schema: object, key: str, depth: int = 0) -> Any:
        """A value that fits the schema, as far as a simple reading of it goes."""
        schema = self._resolved(schema)
        self._left -= 1
        if not schema or depth > _MAX_DEPTH or self._left < 0:
            return self._string({}, key)
        for given in ("const", "default"):
            if given in schema and schema[given] is not None:
                return schema[given]
        if schema.get("enum"):
            return self._member(schema["enum"])
        for union in ("anyOf", "oneOf", "allOf"):
            if schema.get(union):
                branches = [branch for branch in schema[union] if branch != {"type": "null"}]
                return self.value(branches[0] if branches else {"type": "null"}, key, depth + 1)
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((name for name in kind if name != "null"), "null")
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                least = min(max(1, int(schema.get("minItems", 1))), max(1, self._left))
                return [self.value(schema.get("items", {}), key, depth + 1) for _ in range(least)]
            case "integer" | "number":
                return self._number(schema, whole=kind == "integer")
            case "boolean":
                return not re.search(r"\b(not|without|no)\b", self._asked)
            case "null":
                return None
        return self._string(schema, key)

    def _object(self, schema: JsonObject, depth: int) -> dict[str, Any]:
        properties = schema.get("properties") or {}
        required = schema.get("required") or ()
        spoken = _words(self._asked)
        wanted = [key for key in properties if key in required or _stem(key) in spoken]
        wanted += [key for key in required if key not in properties]
        return {key: self.value(properties.get(key, {}), key, depth + 1) for key in wanted}

    def _resolved(self, schema: object) -> JsonObject:
        for _ in range(_MAX_DEPTH):
            if not isinstance(schema, dict):
                return {}
            if not isinstance(path := schema.get("$ref"), str) or not path.startswith("#"):
                return schema
            schema = self._root
            for step in path.removeprefix("#/").split("/") if path != "#" else ():
                schema = schema.get(step, {}) if isinstance(schema, dict) else {}
        return {}

    def _member(self, members: Sequence[Any]) -> Any:
        spoken = self._asked.lower()
        return next((member for member in members if str(member).lower() in spoken), members[0])

    def _number(self, schema: JsonObject, *, whole: bool) -> int | float:
        number = float(self._numbers.pop(0)) if self._numbers else schema.get("minimum", 1)
        number = max(number, schema.get("minimum", number))
        number = min(number, schema.get("maximum", number))
        return int(number) if whole or number == int(number) else number

    def _string(self, schema: JsonObject, key: str) -> str:
        pattern, fallback = _BY_FORMAT.get(schema.get("format") or key, (None, ""))
        if pattern is not None:
            found = pattern.search(self._asked)
            return found.group() if found else fallback
        text = self._names.pop(0) if self._names else self._rest() or key
        text = text.ljust(min(int(schema.get("minLength", 0)), _MAX_CHARS), "x")
        return text[: int(schema.get("maxLength", len(text)))]

    def _rest(self) -> str:
        """What the message is about: its words without those that only ask."""
        return " ".join(word for word in self._asked.rstrip("?.! ").split() if word.lower() not in _STOP_WORDS)
