"""A model in this process: a GGUF file in llama.cpp, through the package xllamacpp (the extra `embedded`).

The engine is a library, not a server: the pieces of an answer arrive through a callback, in a thread for each, and the
callback's result can end a generation. While it reads a prompt it reports its progress, so that it can be ended there,
too. The package always opens a port on loopback: that is locked with a random key that is never stored.
"""

import asyncio
import logging
import re
import secrets
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from importlib.util import find_spec
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw, Struct

from callwright.constraints.compile import constraint_key
from callwright.constraints.lark import Vocabulary
from callwright.conversation import FunctionTool
from callwright.errors import ConfigError, RequestError, UpstreamError
from callwright.events import Usage
from callwright.settings.extras import missing_package
from callwright.tolerant_json.codec import decode, encode
from callwright.upstreams.answers import RawFields
from callwright.upstreams.base import Delta, Deltas, GenerationRequest, HandedAnswers
from callwright.upstreams.completions import IN_PROCESS, CompletionAnswer
from callwright.upstreams.constrained import Grammars, constrains_itself
from callwright.upstreams.embedded.gguf import CONTROL, GgufFile
from callwright.upstreams.handed import lacking, read_usage
from callwright.upstreams.refusals import maybe_too_long

log = logging.getLogger("callwright.upstreams")

_PACKAGE: Final = "xllamacpp"
# A generation can be ended after each batch of this many tokens of its prompt.
_BATCH_TOKENS: Final = 512
# For the prompts of conversations that lost their slot to others. llama.cpp's own bound, 8 GiB, is a server's.
_PROMPT_CACHE_MIB: Final = 1024
_ERRORS_ONLY: Final = 1
# If Harmony's token is between parts of an answer, llama.cpp makes it a text and yet reports it to llguidance as the
# end of the answer: so an answer with it breaks the grammar, which is then off. (llama.cpp b11549, src/llama-vocab.cpp)
_HARMONY: Final = frozenset(("<|end|>", "<|channel|>"))
# Requested with a grammar of llguidance, which a build without it refuses.
_PROBE: Final = "ok-7f3"
_CALLERS_FAULT: Final = 400
_MAX_NESTED: Final = 200
# Fields of a request that are sent to the engine. It runs in this process, and unexpected input can crash it.
ENGINE_FIELDS: Final = frozenset(
    {
        *("grammar", "json_schema", "ignore_eos"),
        *("max_tokens", "max_completion_tokens", "stop", "seed"),
        *("temperature", "top_p", "top_k", "min_p", "typical_p"),
        *("presence_penalty", "frequency_penalty", "repeat_penalty", "repeat_last_n"),
    }
)


class EngineOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[models.engine]`: how llama.cpp runs a model in this process."""

    context_tokens: Annotated[int, Meta(ge=64, le=16_777_216)] = 16_384
    """Room for prompts and answers, shared by all slots; never more than the model was trained for."""
    slots: Annotated[int, Meta(ge=1, le=256)] = 4
    """Parallel requests."""
    threads: Annotated[int, Meta(ge=0, le=1_024)] = 0
    """Threads of the CPU; `0`: as llama.cpp sees fit."""
    gpu_layers: Annotated[int, Meta(ge=-1, le=10_000)] = -1
    """Layers on the GPU; `-1`: as many as fit."""


def _engine_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request that reach the engine. Raises `RequestError` for a grammar too deep for its stack."""
    grammar, depth = fields.get("grammar"), 0
    for char in re.findall(r"[()]", grammar) if isinstance(grammar, str) else ():
        depth += 1 if char == "(" else -1
        if depth > _MAX_NESTED:
            raise RequestError(
                f"Invalid 'grammar': expected at most {_MAX_NESTED} parentheses inside of each other, got more.",
                param="grammar",
                code="invalid_value",
            )
    return {name: value for name, value in fields.items() if name in ENGINE_FIELDS}


def _completed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a completion that reach the engine. Raises `RequestError` for more than one."""
    taken = {**_engine_fields(fields), "prompt": fields.get("prompt")}
    if isinstance(taken["prompt"], list) and len(taken["prompt"]) == 1:
        (taken["prompt"],) = taken["prompt"]
    if not isinstance(taken["prompt"], str):
        raise RequestError(
            "Invalid 'prompt': a model in this process completes one text in a request. Expected a string.",
            param="prompt",
            code="unsupported_value",
        )
    for name in ("n", "best_of"):
        if fields.get(name) not in (None, 1):
            raise RequestError(
                f"Invalid '{name}': a model in this process gives one completion in a request.",
                param=name,
                code="unsupported_value",
            )
    return taken


def _vocabulary(file: GgufFile, stops: Iterable[str]) -> Vocabulary:
    """What llguidance has to know of a file's tokens."""
    ids = {token: number for number, token in enumerate(file.tokens)}
    specials = {
        token: f"<[{number}]>"
        for number, (token, kind) in enumerate(zip(file.tokens, file.kinds, strict=False))
        if kind == CONTROL
    }
    ends = {ids[stop] for stop in stops if stop in ids} | ({file.end} if file.end is not None else set())
    return Vocabulary(specials, tuple(f"<[{number}]>" for number in sorted(ends)))


def _has_lark(tool: FunctionTool) -> bool:
    grammar = tool.custom.grammar if tool.custom else None
    return grammar is not None and grammar.syntax == "lark"


class _Failure(Struct):
    """`type` and `code` are llama.cpp's: 400 if the request is at fault."""

    message: str = ""
    code: int = 0


class _Piece(Struct):
    error: _Failure | None = None


class EmbeddedUpstream:
    """The model of a file, for mode raw. It is loaded by `open`, or when it is first asked."""

    def __init__(self, file: GgufFile, options: EngineOptions | None = None) -> None:
        if find_spec(_PACKAGE) is None:
            raise missing_package(_PACKAGE, f"{file.path}")
        self.name = file.path.name
        self._file = file
        self._options = options or EngineOptions()
        self._engine: Any = None
        self._loading = threading.Lock()
        self._threads = ThreadPoolExecutor(self._options.slots, thread_name_prefix="llama.cpp")
        self._running: set[threading.Event] = set()
        self._has_llguidance = False
        self._grammars = Grammars(self.name)
        self._vocabulary: Vocabulary | None = None
        self._own = secrets.token_bytes(16)  # of the grammars that name tokens of this file

    async def open(self) -> None:
        """Load the model. Raises `ConfigError` when llama.cpp cannot."""
        if self._engine is None:
            await asyncio.to_thread(self._load)

    async def stream(self, generation: GenerationRequest) -> Deltas:
        await self.open()
        given = generation.fields
        generation = msgspec.structs.replace(generation, fields=_engine_fields(given), streamed=True)
        constraining = await self._constraining(generation)
        body = {**IN_PROCESS.body(generation), **constraining, "return_progress": True}
        if (timings := generation.timings) is not None:
            timings.dropped = frozenset(given.keys() - generation.fields.keys())
            timings.sends(("llamacpp", constraining["grammar"]) if constraining else None)
        answer = CompletionAnswer(IN_PROCESS, self.name)
        async with aclosing(self._pieces(encode(body))) as pieces:
            async for piece in pieces:
                if failure := decode(piece, _Piece).error:
                    raise self._failed(failure)
                deltas: list[Delta] = []
                answer.read(decode(piece, answer.kind), deltas)
                if deltas:
                    yield deltas
        if not answer.has_stopped:
            message = f"llama.cpp with {self.name} ended in the middle of the answer."
            raise UpstreamError(message, fault="cut", upstream=self.name)

    async def hand_on(self, generation: GenerationRequest, path: str) -> HandedAnswers:
        """See `Upstream`: it completes one prompt, and has no other endpoint."""
        if path != "/completions":
            raise lacking(f"{self.name}, which runs in this process,", path)
        await self.open()
        fields = _completed(generation.fields)
        if generation.timings is not None:
            generation.timings.dropped = frozenset(generation.fields.keys() - fields.keys())
            generation.timings.sends()
        usage: Usage | None = None
        id_ = Raw(encode(f"cmpl-{secrets.token_hex(12)}"))  # llama.cpp's own is that of a chat
        body = {**fields, "stream": generation.streamed, **({"return_progress": True} if generation.streamed else {})}
        async with aclosing(self._pieces(encode(body))) as pieces:
            async for piece in pieces:
                if failure := decode(piece, _Piece).error:
                    raise self._failed(failure)
                answer = decode(piece, RawFields)
                usage = read_usage(answer) or usage
                if "choices" in answer:
                    yield [{**answer, "id": id_}]
        if usage is not None:
            yield [usage]

    async def models(self) -> list[str]:
        """The one model, by the name of its file."""
        return [self._file.path.stem]

    def window(self, model: str) -> int | None:
        return min(self._options.context_tokens, self._file.context_tokens or self._options.context_tokens)

    async def close(self) -> None:
        """End what runs, and give back the memory."""
        for ended in self._running:
            ended.set()
        await asyncio.to_thread(self._unload)

    async def _constraining(self, generation: GenerationRequest) -> Mapping[str, Any]:
        """The grammar, as Lark or GBNF.

        Lark is for llguidance, with which the engine is usually built; GBNF for builds without it, and for a custom
        tool's Lark, which only GBNF can embed in a call.
        """
        constraint = generation.constraint
        if constraint is None or constrains_itself(generation):
            return {}
        key = constraint_key(constraint)
        found = None
        if self._has_llguidance and not any(map(_has_lark, constraint.tools)):
            if self._vocabulary is None:
                self._vocabulary = _vocabulary(self._file, generation.stops)
            found = await self._grammars.compile(constraint, "llguidance", key + self._own, self._vocabulary)
        found = found or await self._grammars.compile(constraint, "llamacpp", key)
        return IN_PROCESS.spelling.fields(found) if found is not None and IN_PROCESS.spelling is not None else {}

    async def _pieces(self, body: bytes) -> AsyncGenerator[bytes, None]:
        """The pieces of an answer. Closing the generator ends it in the engine; what still waits for a slot goes."""
        loop = asyncio.get_running_loop()
        said: asyncio.Queue[bytes | None] = asyncio.Queue()
        ended = threading.Event()

        def tell(piece: bytes) -> bool:
            """Whether the engine shall end."""
            if not ended.is_set():
                loop.call_soon_threadsafe(said.put_nowait, piece)
            return ended.is_set()

        self._running.add(ended)
        work = loop.run_in_executor(self._threads, self._complete, body, tell)
        work.add_done_callback(lambda _: said.put_nowait(None))
        try:
            while (piece := await said.get()) is not None:
                yield piece
            if not work.cancelled():
                work.result()
        finally:
            ended.set()
            work.cancel()
            self._running.discard(ended)

    def _complete(self, body: bytes, tell: Callable[[bytes], bool]) -> None:
        self._engine.handle_completions(body, tell)

    def _load(self) -> None:
        with self._loading:
            if self._engine is None:
                log.info("loading %s", self._file.path)
                self._engine = self._loaded()
                self._engine.handle_metrics()  # returns once its loop runs: if ended earlier, it would never stop
                self._has_llguidance = not self._file_is_harmony() and self._takes_lark()

    def _loaded(self) -> Any:
        import xllamacpp  # here, because it is an extra

        options = self._options
        asked = xllamacpp.CommonParams()
        asked.model.path = str(self._file.path)
        asked.n_ctx = self.window("")
        asked.n_parallel = options.slots
        asked.kv_unified = True
        asked.n_batch = asked.n_ubatch = _BATCH_TOKENS
        asked.n_gpu_layers = options.gpu_layers
        asked.cache_ram_mib = _PROMPT_CACHE_MIB
        if options.threads:
            asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = options.threads
        asked.offline, asked.ui, asked.endpoint_metrics = True, False, True
        asked.port, asked.api_keys = 0, [secrets.token_urlsafe(32)]
        asked.verbosity = _ERRORS_ONLY
        try:
            return xllamacpp.Server(asked)
        except Exception as error:  # whatever the engine throws
            raise ConfigError(f"llama.cpp cannot load {self._file.path}: see its messages above.") from error

    def _file_is_harmony(self) -> bool:
        return _HARMONY.issubset(self._file.tokens)

    def _takes_lark(self) -> bool:
        said: list[str] = []
        grammar = f'%llguidance {{}}\nstart: "{_PROBE}"\n'
        asked = {"prompt": "Hi", "grammar": grammar, "max_tokens": len(_PROBE), "stream": False}
        self._engine.handle_completions(encode(asked), lambda piece: said.append(piece.decode()))
        return _PROBE[:2] in "".join(said)

    def _unload(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        with self._loading:
            self._engine = None

    def _failed(self, failure: _Failure) -> RequestError | UpstreamError:
        if too_long := maybe_too_long(failure.message):
            return too_long
        if failure.code == _CALLERS_FAULT:
            return RequestError(failure.message)
        message = f"llama.cpp with {self.name} failed: {failure.message}"
        return UpstreamError(message, fault="status", upstream=self.name)
