"""Real answers of chat endpoints, as deltas: chunks of a stream, or a whole answer.

Read where the meaning is plain: reasoning under two names or in parts, refusals and annotations, calls without an index
or with odd ones, ids that are numbers, whole calls in one chunk, arguments as objects, the old `function_call`. What is
left out is told in the log, what has no plain meaning is refused by name. docs/contributing/upstreams.md has the table.
"""

import json
import logging
from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar, Final, Protocol, TypeVar

from msgspec import Struct

from callwright.events import AnnotationsDelta, AnswerMetadata, FinishReason, RefusalDelta, Usage
from callwright.upstreams.answers import HalfCharacters, UnreadableError
from callwright.upstreams.base import Delta, FinishDelta, ReasoningTextDelta, TextDelta, ToolCallDelta

log = logging.getLogger("callwright.upstreams")


class _AnyChoice(Protocol):
    """One of the answers in an event; `is_whole`: all of it is there."""

    index: int | None

    @property
    def is_whole(self) -> bool: ...


C = TypeVar("C", bound=_AnyChoice)

# Finish reasons of an answer with calls.
_CALLED: Final = ("tool_calls", "function_call", "tool_use")
# In lower case. OpenAI's, and those of Gemini, Anthropic, Mistral, TGI, Together, DeepSeek, z.ai, vLLM and SGLang.
_FINISHED: Final[Mapping[str, FinishReason]] = {
    **dict.fromkeys((*_CALLED, "stop", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("eos", "eos_token", "complete", "completed", "repetition"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_length", "model_length", "limit"), "length"),
    **dict.fromkeys(("content_filter", "safety", "sensitive", "recitation", "prohibited_content"), "content_filter"),
}
# The server gave the answer up: it is incomplete.
_FAILED: Final = frozenset(
    ("abort", "aborted", "cancel", "canceled", "cancelled", "error", "insufficient_system_resource", "network_error")
)
_MOST_TOKENS: Final = 1 << 53
_FURTHER: Final = "a further answer, which is left out; its index"
# In place of an index, which a `function_call` has not: there is only one.
_FUNCTION_CALL: Final = "function_call"


class OddForms(Struct):
    """Deviations in one answer: each kind is logged once, under the `name` of the server. `answer`: the index of the
    choice that is read.
    """

    name: str
    logged: set[str] = set()
    answer: int | None = None

    def tell(self, what: str, value: object) -> None:
        """Log a value that was left out, or read as something else."""
        if what not in self.logged:
            self.logged.add(what)
            log.warning("%s sent %s: %.100r", self.name, what, value)

    def is_answer(self, index: int | None) -> bool:
        """Whether a choice of this index is the answer: the first to arrive, as one was requested."""
        if index is None or index == self.answer:
            return True
        if self.answer is None:
            self.answer = index
            return True
        self.tell(_FURTHER, index)
        return False

    def one_answer(self, choices: Sequence[C]) -> Sequence[C]:
        """The choices in one event that may belong to one answer.

        After the first, a choice without an index belongs to another answer, as does one that follows a whole one of
        its index.
        """
        kept: list[C] = []
        whole: set[int | None] = set()
        for at, choice in enumerate(choices):
            if at and (choice.index is None or choice.index in whole):
                self.tell(_FURTHER, choice.index)
                continue
            kept.append(choice)
            if choice.is_whole:
                whole.add(choice.index)
        return kept


def finish_of(said: str, odd: OddForms) -> FinishReason:
    """The meaning of a finish reason. Raises `UnreadableError` if the server gave the answer up."""
    known = _FINISHED.get(said.lower())
    if known is not None:
        return known
    if said.lower() in _FAILED:
        raise UnreadableError(f"gave up its answer (finish_reason {said[:100]!r})")
    if not said.startswith("<"):  # the token that the model stopped at, as some proxies write
        odd.tell("a finish_reason that nobody knows, read as 'stop'", said)
    return "stop"


class _Function(Struct):
    name: str | None = None
    arguments: Any = None


class _Call(Struct):
    """A call or a piece of one. Some servers omit `function` and put its fields next to the id."""

    index: int | float | str | None = None
    id: int | str | None = None
    type: Any = None
    function: _Function | None = None
    name: str | None = None
    arguments: Any = None

    @property
    def call(self) -> _Function:
        """Its name and arguments. Raises `UnreadableError` if it is not a function call."""
        if self.function is not None:
            return self.function
        if self.type not in (None, "", "function"):
            raise UnreadableError(f"sent a call of a type other than function: {str(self.type)[:100]!r}")
        return _Function(self.name, self.arguments)


class _Part(Struct):
    """A part of content; `thinking` is Mistral's reasoning, a text or parts again."""

    type: str | None = None
    text: str | None = None
    refusal: str | None = None
    thinking: "str | list[_Part] | None" = None


class _Delta(Struct):
    content: str | list[_Part] | None = None
    refusal: Any = None
    annotations: Any = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None


class _Choice(Struct):
    index: int | None = None
    delta: _Delta | None = None
    message: _Delta | None = None
    text: Any = None
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None
    usage: "CountedTokens | None" = None

    @property
    def is_whole(self) -> bool:
        return self.message is not None


class CountedTokens(Struct):
    """`usage` of an answer, with the fields that servers send: those of Chat Completions, or the words of the Responses
    and the Messages API.
    """

    class Prompt(Struct):
        cached_tokens: int | float | None = None

    class Completion(Struct):
        reasoning_tokens: int | float | None = None

    prompt_tokens: int | float | None = None
    completion_tokens: int | float | None = None
    prompt_tokens_details: Prompt | None = None
    completion_tokens_details: Completion | None = None
    input_tokens: int | float | None = None
    output_tokens: int | float | None = None
    input_tokens_details: Prompt | None = None
    output_tokens_details: Completion | None = None

    def usage(self, odd: OddForms) -> Usage:
        """The token counts. One that is missing, or no count, is 0. A part is no larger than the whole."""
        said = self.prompt_tokens_details or self.input_tokens_details
        written = self.completion_tokens_details or self.output_tokens_details
        prompt = _count(self.input_tokens if self.prompt_tokens is None else self.prompt_tokens, odd)
        completion = _count(self.output_tokens if self.completion_tokens is None else self.completion_tokens, odd)
        return Usage(
            prompt_tokens=prompt,
            completion_tokens=completion,
            cached_tokens=min(prompt, _count(said.cached_tokens, odd)) if said else 0,
            reasoning_tokens=min(completion, _count(written.reasoning_tokens, odd)) if written else 0,
        )


def _count(said: int | float | None, odd: OddForms) -> int:
    if said is None:
        return 0
    if 0 <= said < _MOST_TOKENS and said == int(said):
        return int(said)
    odd.tell("a token count that is none, read as 0", said)
    return 0


class AnswerFields(Struct, kw_only=True):
    """Metadata of an answer, repeated in each chunk. A server may send anything there: only texts are used."""

    system_fingerprint: Any = None
    service_tier: Any = None


def metadata_of(event: AnswerFields) -> AnswerMetadata:
    """The metadata in a chunk."""
    said = (event.system_fingerprint, event.service_tier)
    return AnswerMetadata(*(value if isinstance(value, str) else None for value in said))


class _Chunk(AnswerFields, kw_only=True):
    mark: ClassVar = b'"choices"'
    choices: list[_Choice] | None = None
    usage: CountedTokens | None = None


class ChatAnswer:
    """Reads the chunks of one answer. It numbers the calls itself: the indexes of servers are not reliable.

    `name` is the server's, for the log; `most_calls` bounds the calls.
    """

    kind = _Chunk

    def __init__(self, name: str, most_calls: int) -> None:
        self._most_calls = most_calls
        self._calls = 0
        self._number: dict[str, int] = {}  # by the server's index
        self._ids: dict[int, str] = {}
        self._by_id: dict[str, int] = {}
        self._named: set[int] = set()
        self._metadata: tuple[object, object] = (None, None)  # of the chunk before: each repeats it
        self._odd = OddForms(name)
        self._halves = HalfCharacters()
        self._said: set[Hashable] = set()  # as `_say` calls it
        self._latest: Hashable = None  # of these
        self._has_message = False  # messages are the pieces of this answer
        self._has_blank_end = False  # the latest finish reason was an empty text
        self.tell = self._odd.tell
        self.has_begun = False
        self.has_stopped = False

    @property
    def has_said(self) -> bool:
        """Whether content has come."""
        return "content" in self._said

    def read(self, event: _Chunk, deltas: list[Delta]) -> None:
        """Append the deltas of a chunk, or of a whole answer that was not streamed."""
        self.has_begun = True
        if (metadata := (event.system_fingerprint, event.service_tier)) != self._metadata:
            self._metadata = metadata
            deltas.append(metadata_of(event))
        choices: Sequence[_Choice] = event.choices or ()
        if len(choices) > 1:
            choices = self._odd.one_answer(choices)
        for choice in choices:
            if choice.index != self._odd.answer and not self._odd.is_answer(choice.index):
                continue
            if choice.message:
                self._read_both(choice.message, choice, deltas)
            elif choice.delta:
                self._read_message(choice.delta, choice.logprobs, deltas, is_whole=False)
            elif choice.logprobs:
                deltas.append(TextDelta("", choice.logprobs))
            if choice.text:
                self._read_text(choice, deltas)
            if choice.usage and not event.usage:
                deltas.append(choice.usage.usage(self._odd))
            if choice.finish_reason:
                self.has_stopped = True
                for key, text in self._halves.take_replacements():
                    self._say(key, text, deltas)
                if choice.finish_reason.lower() in _CALLED and not (self._calls or self.has_said):
                    deltas.append(ToolCallDelta(self._new()))  # the server's parser lost it
                deltas.append(FinishDelta(finish_of(choice.finish_reason, self._odd)))
            elif choice.finish_reason is not None:
                self._end_blank(choice)
        if event.usage:
            deltas.append(event.usage.usage(self._odd))

    def _end_blank(self, choice: _Choice) -> None:
        self._has_blank_end = True
        if choice.message:  # all of the answer is there
            self.marked_over()

    def marked_over(self) -> None:
        """See `EventReader`. A server that has no reason for the end is taken at its word that this is the end. So is
        one without a finish reason after calls, whose arguments show whether they are whole; a text does not.
        """
        if (self._has_blank_end or self._calls) and not self.has_stopped:
            missing = "an empty finish_reason" if self._has_blank_end else "no finish_reason"
            self._odd.tell(f"{missing}, read as 'stop'", "")
            self.has_stopped = True

    def _read_text(self, choice: _Choice, out: list[Delta]) -> None:
        """A text where completions have it, in place of a message."""
        beside = choice.message or choice.delta
        if isinstance(choice.text, str) and not (beside and beside.content):
            self._odd.tell("the text of a completion, read as content", choice.text)
            self._say("content", choice.text, out)

    def _read_both(self, message: _Delta, choice: _Choice, out: list[Delta]) -> None:
        """A whole message, after the delta that may accompany it. Messages alone are pieces like deltas."""
        delta, logprobs = choice.delta, choice.logprobs
        if delta:
            own, logprobs = (logprobs, None) if delta.content else (None, logprobs)
            self._read_message(delta, own, out, is_whole=False)
        is_first = not (self._said or self._calls)
        if not (is_first or self._has_message):
            message, logprobs = self._unsaid(message, logprobs)
        self._read_message(message, logprobs, out, is_whole=True)
        if is_first:
            self._has_message = bool(self._said or self._calls)

    def _unsaid(self, message: _Delta, logprobs: dict[str, Any] | None) -> tuple[_Delta, dict[str, Any] | None]:
        """A message without the parts that earlier deltas had: at the end of a stream some servers repeat all of it."""
        if has := ", ".join([name for name in message.__struct_fields__ if getattr(message, name)]):
            self._odd.tell("a message after its pieces, read only for fields that they left empty; it has", has)
        kept = _Delta()
        if not self._said.intersection(("content", "refusal")):
            kept.content, kept.refusal, kept.annotations = message.content, message.refusal, message.annotations
        if "reasoning" not in self._said:
            kept.reasoning_content, kept.reasoning = message.reasoning_content, message.reasoning
        if not self._calls:
            kept.tool_calls, kept.function_call = message.tool_calls, message.function_call
        return kept, logprobs if kept.content else None

    def _read_message(
        self, delta: _Delta, logprobs: dict[str, Any] | None, out: list[Delta], *, is_whole: bool
    ) -> None:
        if reasoning := delta.reasoning_content or delta.reasoning:
            self._say("reasoning", reasoning, out)
        content = delta.content
        if delta.refusal or delta.annotations or isinstance(content, list):
            self._read_parts(delta, logprobs, out)
        elif content or logprobs:
            self._say("content", content or "", out, logprobs)
        taken: dict[int, bool] | None = {} if is_whole else None
        for call in delta.tool_calls or ():
            self._read_call(call, out, taken)
        if function := delta.function_call:
            if any(_is_same(call.call, function) for call in delta.tool_calls or ()):  # llama-cpp-python sends both
                self._odd.tell("a function_call that a call beside it says, too", function.name)
            else:
                self._read_call(_Call(_FUNCTION_CALL, function=function), out)

    def _say(self, key: Hashable, text: str, out: list[Delta], logprobs: dict[str, Any] | None = None) -> None:
        """Append a text: `content`, `reasoning`, or arguments of the call whose number the key is."""
        for piece in self._halves.pieces(key, text):
            match key:
                case "content":
                    if piece:
                        self._said.add(key)
                    if piece or logprobs:
                        out.append(TextDelta(piece, logprobs))
                    logprobs = None
                case "reasoning":
                    # Thoughts with an answer or a call between them do not share a line.
                    is_next = piece and key in self._said and self._latest != key
                    self._said.add(key)
                    out.append(ReasoningTextDelta(f"\n{piece}" if is_next else piece))
                case int():
                    out.append(ToolCallDelta(key, arguments=piece))
            self._latest = key if piece else self._latest

    def _read_parts(self, delta: _Delta, logprobs: dict[str, Any] | None, out: list[Delta]) -> None:
        """Content with a refusal, with annotations, or in parts."""
        parts = delta.content if isinstance(delta.content, list) else [_Part("text", delta.content)]
        for part in parts:
            is_read = part.thinking or part.text is not None or part.refusal is not None
            if not is_read and part.type not in (None, "text", "thinking"):
                raise UnreadableError(f"sent content of a type other than text: {part.type[:100]!r}")
        refusal = _refusal(delta, parts)
        for is_thought, run in groupby(parts, key=lambda part: bool(part.thinking)):
            if is_thought:
                self._say("reasoning", "\n".join(_thought(part.thinking or "") for part in run), out)
            elif text := "".join(part.text or "" for part in run):
                self._say("content", text, out, logprobs)
                logprobs = None
        if logprobs and not refusal:
            self._say("content", "", out, logprobs)
        if refusal:
            self._said.add("refusal")
            out.append(RefusalDelta(refusal, logprobs))
        found = delta.annotations if isinstance(delta.annotations, list) else []
        if annotations := tuple(one for one in found if isinstance(one, dict)):
            out.append(AnnotationsDelta(annotations))

    def _read_call(self, call: _Call, out: list[Delta], taken: dict[int, bool] | None = None) -> None:
        """Append the deltas of a piece of a call.

        In a whole message each entry is a call of its own: `taken` has the numbers of those before it, whatever index
        or id it shares with them, and whether they have arguments. Only an entry without a name can continue one
        without arguments. An entry without name, id and arguments is ignored.
        """
        function = call.function or call.call
        id_ = str(call.id) if call.id is not None and call.id != "" else None
        arguments = function.arguments
        if not isinstance(arguments, str):
            arguments = _arguments_text(arguments)
        name = function.name
        if id_ is None and not (name or arguments):
            return
        number = self._without_index(id_, name) if call.index is None else self._by_index(call.index, id_, name)
        if id_ is not None:
            self._ids.setdefault(number, id_)
            self._by_id.setdefault(id_, number)
        if taken is not None:
            if number in taken and (name or taken[number]):
                number = self._new()
            taken[number] = bool(arguments)
        if name:
            self._named.add(number)
        self._latest = number
        for piece in self._halves.pieces(number, arguments):
            out.append(ToolCallDelta(number, id_, name, piece))
            id_ = name = None

    def _without_index(self, id_: str | None, name: str | None) -> int:
        """A known id is that call's, and a name begins one unless the latest still lacks it. Without any of these it is
        the latest call's.
        """
        number = self._by_id.get(id_) if id_ is not None else self._calls - 1
        if number is None or number < 0 or (id_ is None and name and number in self._named):
            return self._new()
        return number

    def _by_index(self, index: float | str, id_: str | None, name: str | None) -> int:
        """The number of a call by the server's index.

        An id that differs from that of the index's call belongs to another call, known or new, whatever the index: some
        servers give every call index 0. A new id begins a call only with a name: other servers give every piece an id
        of its own. A new index begins a call, unless there is no name, and the id is known or missing.
        """
        key = str(int(index) if isinstance(index, float) and index.is_integer() else index).strip()
        known = self._number.get(key)
        is_anothers = known is not None and id_ is not None and self._ids.get(known, id_) != id_
        if id_ is not None and (is_anothers or (known is None and not name)):
            known = self._by_id.get(id_, None if name else known)
        elif known is None and not (name or id_) and self._calls:
            known = self._calls - 1
        number = self._number[key] = self._new() if known is None else known
        return number

    def _new(self) -> int:
        if self._calls >= self._most_calls:
            raise UnreadableError(f"sent more than {self._most_calls:,} calls in one answer")
        self._calls += 1
        return self._calls - 1


def _thought(thinking: str | list[_Part]) -> str:
    return thinking if isinstance(thinking, str) else "".join(part.text or "" for part in thinking)


def _refusal(delta: _Delta, parts: Sequence[_Part]) -> str:
    """The refusal of a delta, in a field of its own or in parts."""
    whole = delta.refusal if isinstance(delta.refusal, str) else ""
    return whole or "".join(part.refusal or "" for part in parts)


def _arguments_text(arguments: object) -> str:
    """Arguments as text: some servers send the value itself."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _is_same(one: _Function, other: _Function) -> bool:
    return one.name == other.name and _arguments_text(one.arguments) == _arguments_text(other.arguments)
