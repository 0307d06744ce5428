"""Raw completion endpoints: a prompt with control tokens in, the model's text with its control tokens out.

Each server needs different fields to preserve control tokens, and for a grammar. Knows no dialect: the prompt is
already rendered.

Sources: the request schemas of vLLM 0.33, SGLang 0.5.23 and llama.cpp b11549.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

from msgspec import Struct

from callwright.constraints.compile import Compiled
from callwright.constraints.constraint import Constraint
from callwright.settings.bounds import Bounds
from callwright.upstreams.answers import HalfCharacters
from callwright.upstreams.base import Delta, Deltas, FinishDelta, GenerationRequest, TextDelta
from callwright.upstreams.chat import streaming
from callwright.upstreams.chat_answers import AnswerFields, CountedTokens, OddForms, finish_of, metadata_of
from callwright.upstreams.constrained import ConstrainedUpstream, ConstraintEncoding, sglang_tag, vllm_tag
from callwright.upstreams.http import Timeouts
from callwright.upstreams.http_client.response import AT_ONCE

# The servers whose completion endpoint is known; `openai` is any other.
ServerKind: TypeAlias = Literal["openai", "vllm", "sglang", "llamacpp"]
RAW_SERVERS: Final[tuple[ServerKind, ...]] = get_args(ServerKind)

# Fields of a chat request that a completion endpoint does not know, or gives another meaning.
CHAT_ONLY = frozenset(
    {
        *("logprobs", "top_logprobs", "reasoning_effort", "verbosity", "chat_template_kwargs"),
        *("metadata", "store", "service_tier", "prediction", "moderation", "safety_identifier"),
        *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
    }
)


class CompletionsUpstream(ConstrainedUpstream):
    """A completion endpoint, for mode raw. `flavour` is the kind of server, with its own fields and paths."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        bounds: Bounds | None = None,
        *,
        flavour: ServerKind = "openai",
    ) -> None:
        self._way = _WAYS[flavour]
        super().__init__(
            url.rstrip("/").removesuffix("/v1") if flavour == "llamacpp" else url, headers, timeouts, bounds
        )
        self._kind = flavour
        if flavour == "llamacpp":
            self._above_handed = "/v1"

    def _spellings(self, constraint: Constraint) -> Sequence[ConstraintEncoding]:
        return () if self._way.spelling is None else (self._way.spelling,)

    def _deltas(self, generation: GenerationRequest, constraining: Mapping[str, Any]) -> Deltas:
        way = self._way
        body = {**way.body(generation), **constraining}
        return self.events(way.path, body, CompletionAnswer(way, self.name, _own_stops(generation)), generation.headers)


class CompletionAnswer:
    """Reads the events of one completion; an `EventReader`. `name` is the server's, for the log, `own_stops` are
    stop strings that must not appear in the answer.
    """

    def __init__(self, way: "_Way", name: str, own_stops: Sequence[str] = ()) -> None:
        self.kind: type[Any] = way.chunk
        self.has_stopped = False
        self._way = way
        self._own_stops = own_stops
        self._metadata: tuple[object, object] = (None, None)  # of the chunk before: each repeats it
        self._odd = OddForms(name)
        self.tell = self._odd.tell
        self._halves = HalfCharacters()

    def marked_over(self) -> None:
        """See `EventReader`."""

    def read(self, event: Any, deltas: list[Delta]) -> None:
        if isinstance(event, AnswerFields):
            metadata = (event.system_fingerprint, event.service_tier)
            if metadata != self._metadata:
                self._metadata = metadata
                deltas.append(metadata_of(event))
        read: list[Delta] = []
        try:
            self._way.read(event, self._odd, self._own_stops, read)
        finally:  # text before an unreadable part is forwarded
            for delta in read:
                if isinstance(delta, TextDelta):
                    text = delta.text
                    if len(text) <= AT_ONCE and text.isascii() and not self._halves.first_halves:
                        deltas.append(delta)
                    else:
                        deltas += [TextDelta(piece) for piece in self._halves.pieces("", text) if piece]
                    continue
                if isinstance(delta, FinishDelta):
                    self.has_stopped = True
                    for _, text in self._halves.take_replacements():
                        deltas.append(TextDelta(text))
                deltas.append(delta)


def _own_stops(generation: GenerationRequest) -> list[str]:
    """The stop strings that must not appear in the answer: the client's own, and texts of the dialect."""
    given = generation.fields.get("stop") or ()
    return [*([given] if isinstance(given, str) else given), *generation.stop_texts]


def _fields(generation: GenerationRequest) -> dict[str, Any]:
    """The request fields that a completion endpoint takes, with the client's and the dialect's stop strings."""
    fields = dict(generation.fields)
    if (limit := fields.pop("max_completion_tokens", None)) is not None:
        fields["max_tokens"] = limit
    stops = _own_stops(generation)
    for stop in generation.stops:
        if stop not in stops:
            stops.append(stop)
    if stops:
        fields["stop"] = stops
    return fields


_NO_PROMPT: Final = "a completion endpoint needs a rendered prompt"


def _openai_body(generation: GenerationRequest) -> dict[str, Any]:
    assert generation.prompt is not None, _NO_PROMPT
    return {
        **_fields(generation),
        "model": generation.model,
        "prompt": generation.prompt.wire_text,
        **streaming(generation),
    }


# The stop string stays in the output, as it helps the parser; not if there are some that must not appear in the answer.
def _vllm_body(generation: GenerationRequest) -> dict[str, Any]:
    body = _openai_body(generation) | {
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        "add_special_tokens": False,
        "include_stop_str_in_output": not _own_stops(generation),
    }
    if generation.stop_token_ids:
        body["stop_token_ids"] = list(generation.stop_token_ids)
    return body


def _sglang_body(generation: GenerationRequest) -> dict[str, Any]:
    body = _openai_body(generation) | {"skip_special_tokens": False, "no_stop_trim": not _own_stops(generation)}
    if generation.stop_token_ids:
        body["stop_token_ids"] = list(generation.stop_token_ids)
    return body


def _llamacpp_body(generation: GenerationRequest) -> dict[str, Any]:
    fields = _fields(generation)
    if (limit := fields.pop("max_tokens", None)) is not None:
        fields["n_predict"] = limit
    prompt = generation.prompt
    assert prompt is not None, _NO_PROMPT
    # Without preserved_tokens llama.cpp leaves control tokens out of the text, and never stops at them.
    return {
        **fields,
        "prompt": prompt.wire_text,
        "stream": generation.streamed,
        "preserved_tokens": list(prompt.marks),
    }


def _constrained_llamacpp(found: Compiled) -> dict[str, Any]:
    if not found.trigger:
        return {"grammar": found.text}
    trigger = {"type": 1, "value": found.trigger}  # type 1: a word
    return {"grammar": found.text, "grammar_lazy": True, "grammar_triggers": [trigger]}


class _Choice(Struct):
    index: int | None = None
    text: str | None = None
    finish_reason: str | None = None

    @property
    def is_whole(self) -> bool:
        return bool(self.finish_reason)


class _Chunk(AnswerFields, kw_only=True):
    mark: ClassVar = b'"choices"'
    choices: list[_Choice] | None = None
    usage: CountedTokens | None = None


def _read_openai(chunk: _Chunk, odd: OddForms, _: Sequence[str], read: list[Delta]) -> None:
    """Append the deltas of a chunk."""
    choices: Sequence[_Choice] = chunk.choices or ()
    if len(choices) > 1:  # a server's own field may ask for several answers
        choices = odd.one_answer(choices)
    for choice in choices:
        if choice.index != odd.answer and not odd.is_answer(choice.index):
            continue
        if choice.text:
            read.append(TextDelta(choice.text))
        if choice.finish_reason:
            read.append(FinishDelta("length" if finish_of(choice.finish_reason, odd) == "length" else "stop"))
    if chunk.usage:
        read.append(chunk.usage.usage(odd))


class _LlamaTimings(Struct):
    cache_n: int | float | None = None


class _LlamaChunk(Struct):
    mark: ClassVar = b'"content"'
    index: int | None = None
    content: str | None = None
    stop: bool = False
    stop_type: str | None = None
    stopping_word: str = ""
    tokens_evaluated: int | float | None = None
    tokens_predicted: int | float | None = None
    timings: _LlamaTimings | None = None


def _read_llamacpp(chunk: _LlamaChunk, odd: OddForms, own_stops: Sequence[str], read: list[Delta]) -> None:
    """The same for llama.cpp's own endpoint."""
    if not odd.is_answer(chunk.index):
        return
    if chunk.content:
        read.append(TextDelta(chunk.content))
    if chunk.stop:
        # It leaves the stop out of the text, which may be all that ends a call.
        if chunk.stopping_word and chunk.stopping_word not in own_stops:
            read.append(TextDelta(chunk.stopping_word))
        cached = chunk.timings.cache_n if chunk.timings else None
        counts = CountedTokens(chunk.tokens_evaluated, chunk.tokens_predicted, CountedTokens.Prompt(cached))
        read += (counts.usage(odd), FinishDelta("length" if chunk.stop_type == "limit" else "stop"))


class _Way(Struct, frozen=True):
    """How one server is asked and read. `chunk` is the type of its events, `spelling` how it takes a grammar."""

    path: str
    body: Callable[[GenerationRequest], dict[str, Any]]
    chunk: type[Any]
    read: Callable[[Any, OddForms, Sequence[str], list[Delta]], None]
    spelling: ConstraintEncoding | None = None


_WAYS: Final[Mapping[ServerKind, _Way]] = {
    "openai": _Way("/completions", _openai_body, _Chunk, _read_openai),
    "vllm": _Way("/completions", _vllm_body, _Chunk, _read_openai, ConstraintEncoding("xgrammar", vllm_tag)),
    "sglang": _Way("/completions", _sglang_body, _Chunk, _read_openai, ConstraintEncoding("xgrammar", sglang_tag)),
    "llamacpp": _Way(
        "/completion",
        _llamacpp_body,
        _LlamaChunk,
        _read_llamacpp,
        ConstraintEncoding("llamacpp", _constrained_llamacpp),
    ),
}
# llama.cpp as a library in this process: the request of its own endpoint, the answers of OpenAI's.
IN_PROCESS: Final = _Way(
    "", _llamacpp_body, _Chunk, _read_openai, ConstraintEncoding("llamacpp", _constrained_llamacpp)
)
