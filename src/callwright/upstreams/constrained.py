"""Constrained decoding: sends a grammar for the answer to servers that accept one.

The grammar is compiled off the event loop. `callwright.constraints` builds it; the subclass chooses the fields in which
it is sent. If a server refuses it, it is sent in the next way, and finally left out: the answer is validated in any
case.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any, Final

import msgspec
from msgspec import Struct

from callwright.constraints.compile import Compiled, Target, compiled, constraint_key, ready
from callwright.constraints.constraint import Constraint
from callwright.constraints.lark import Vocabulary
from callwright.errors import RequestError, UpstreamError
from callwright.settings import bounds
from callwright.settings.bounds import Bounds
from callwright.tolerant_json.codec import NotJsonError
from callwright.upstreams.answers import UnreadableError, read_json
from callwright.upstreams.base import Deltas, GenerationRequest, HandedAnswers, Server
from callwright.upstreams.handed import handed_on
from callwright.upstreams.http import HttpUpstream, Timeouts
from callwright.upstreams.windows import WINDOW_PAGES

log = logging.getLogger("callwright.upstreams")

# Fields with which a client constrains the answer itself. Then none is added: servers take one constraint.
_CONSTRAINING: Final = frozenset(
    {
        *("structured_outputs", "response_format", "grammar", "json_schema", "regex", "ebnf", "structural_tag"),
        *("guided_json", "guided_regex", "guided_choice", "guided_grammar"),
    }
)
# Words in the errors of servers that refuse a constraint.
_REFUSAL: Final = re.compile(
    r"grammar|structur(?:ed|al)|response_format|ebnf|guid(?:ed|ance)|constrain|schema|extra (?:inputs|fields)"
    r"|unknown field|unrecogni[sz]ed",
    re.IGNORECASE,
)
# A request waits this long for its grammar. Then it goes without, and the next one finds the grammar compiled.
_WAIT_S: Final = 2.0
# Limit of grammars that compile concurrently for one server; further requests are sent without.
_MAX_MAKING: Final = 32
_POOL: Final = ThreadPoolExecutor(2, thread_name_prefix="constraint")


class ConstraintEncoding(Struct, frozen=True):
    """How a server takes a constraint: the engine to compile it for, and the request fields to send it in."""

    target: Target
    fields: Callable[[Compiled], dict[str, Any]]


def vllm_tag(found: Compiled) -> dict[str, Any]:
    """The field for a structural tag in vLLM."""
    return {"structured_outputs": {"structural_tag": found.text}}


def sglang_tag(found: Compiled) -> dict[str, Any]:
    """The field for a structural tag in SGLang."""
    return {"response_format": msgspec.Raw(found.text.encode())}


def constrains_itself(generation: GenerationRequest) -> bool:
    """Whether the client's request has a constraint of its own."""
    return not _CONSTRAINING.isdisjoint(generation.fields)


class Grammars:
    """Compiles the grammars of one server, off the event loop; `name` is the server's, for the log."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._making: dict[bytes, asyncio.Future[Compiled | None]] = {}  # by the constraint's key

    async def compile(
        self, constraint: Constraint, target: Target, key: bytes, vocabulary: Vocabulary | None = None
    ) -> Compiled | None:
        """The compiled constraint; None if the engine cannot express it, or if it takes too long."""
        if ready(key, target):
            return compiled(constraint, target, key, vocabulary)
        making = self._making.get(key)
        if making is None:
            if len(self._making) >= _MAX_MAKING:
                return None
            making = asyncio.wrap_future(_POOL.submit(compiled, constraint, target, key, vocabulary))
            making.add_done_callback(lambda _: self._making.pop(key, None))
            self._making[key] = making
        try:
            return await asyncio.wait_for(asyncio.shield(making), _WAIT_S)
        except TimeoutError:
            log.warning("%s is asked without a grammar: it takes more than %g s to make it", self._name, _WAIT_S)
            return None


class ConstrainedUpstream(HttpUpstream):
    """A server that is sent the constraint of a generation, if it takes one."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        super().__init__(url, headers, timeouts, bounds)
        self._refusals: dict[bytes, int] = {}  # how many ways the server has refused, by the constraint's key
        self._grammars = Grammars(self.name)
        self._above_handed = ""  # prefix of the paths of OpenAI's API, if it is not in the URL
        self._kind: Server = "openai"

    async def models(self) -> list[str]:
        """See `Upstream`. If a server reports windows on another page, that is read, too."""
        names = await super().models()
        kind: Server = "llamacpp" if self._owner == "llamacpp" else self._kind
        if (page := WINDOW_PAGES.get(kind)) is not None:
            path, read = page
            try:
                body = await self._page(self.url.removesuffix("/v1"), path)
                self._windows |= read(read_json(body, object, bounds.MAX_ANSWER_VALUES), names)
            except (UpstreamError, NotJsonError, UnreadableError) as error:
                log.debug("%s does not report windows at %s: %.200r", self.name, path, str(error))
        return names

    def hand_on(self, generation: GenerationRequest, path: str) -> HandedAnswers:
        return handed_on(self, generation, self._above_handed + path)

    def stream(self, generation: GenerationRequest) -> Deltas:
        constraint = generation.constraint
        spellings = self._spellings(constraint) if constraint is not None else ()
        if constraint is None or not spellings or constrains_itself(generation):
            return self._plain(generation)
        return self._constrained(generation, constraint, spellings)

    def _plain(self, generation: GenerationRequest) -> Deltas:
        if generation.timings is not None:
            generation.timings.sends()
        return self._deltas(generation, {})

    async def _constrained(
        self, generation: GenerationRequest, constraint: Constraint, spellings: Sequence[ConstraintEncoding]
    ) -> Deltas:
        key, begun = constraint_key(constraint), False
        for number, spelling in enumerate(spellings):
            if number < self._refusals.get(key, 0):
                continue
            found = await self._grammars.compile(constraint, spelling.target, key)
            if found is None:
                break
            if generation.timings is not None:
                generation.timings.sends((spelling.target, found.text))
            try:
                async with aclosing(self._deltas(generation, spelling.fields(found))) as deltas:
                    async for batch in deltas:
                        begun = True
                        yield batch
                return
            except (RequestError, UpstreamError) as error:
                if begun or not _refuses(error):
                    raise
                self._refusals[key] = number + 1
                log.warning("%s refuses the grammar of a request and is asked without it", self.name)
                log.debug("%s says: %.500r", self.name, str(error))
        async with aclosing(self._plain(generation)) as deltas:
            async for batch in deltas:
                yield batch

    def _spellings(self, constraint: Constraint) -> Sequence[ConstraintEncoding]:
        """The ways in which this server may take the constraint, the best first."""
        raise NotImplementedError

    def _deltas(self, generation: GenerationRequest, constraining: Mapping[str, Any]) -> Deltas:
        """Request the generation, with these fields added."""
        raise NotImplementedError


def _refuses(error: RequestError | UpstreamError) -> bool:
    """Whether an error is about the constraint. A server that is down or slow is not asked again."""
    if isinstance(error, UpstreamError) and error.fault != "status":
        return False
    return _REFUSAL.search(str(error)) is not None
