"""Servers that can be held to a grammar: it is made off the event loop, sent, and left out where it is refused.

What a grammar says is `callwright.constraints`'s, in which fields it goes the subclass's. A server that refuses one is
asked again without it: the answer is checked all the same.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any, Final

import msgspec
from msgspec import Struct

from callwright.constraints.compile import Compiled, Target, compiled, constraint_key, ready
from callwright.constraints.constraint import Constraint
from callwright.constraints.lark import Vocabulary
from callwright.errors import RequestError, UpstreamError
from callwright.upstreams.base import Deltas, GenerationRequest
from callwright.upstreams.http import HttpUpstream, Timeouts

__all__ = ["ConstrainedUpstream", "ConstraintEncoding", "Grammars", "constrains_itself", "sglang_tag", "vllm_tag"]

log = logging.getLogger("callwright.upstreams")

# Fields with which a client constrains the answer itself. Then nothing is added: servers take one constraint.
_CONSTRAINING: Final = frozenset(
    {
        *("structured_outputs", "response_format", "grammar", "json_schema", "regex", "ebnf", "structural_tag"),
        *("guided_json", "guided_regex", "guided_choice", "guided_grammar"),
    }
)
# How servers speak of a constraint that they do not take.
_REFUSAL: Final = re.compile(
    r"grammar|structur(?:ed|al)|response_format|ebnf|guid(?:ed|ance)|constrain|schema|extra (?:inputs|fields)"
    r"|unknown field|unrecogni[sz]ed",
    re.IGNORECASE,
)
# A request waits no longer for its grammar: it goes without, and the grammar is there for the next one.
_WAIT_S: Final = 2.0
# So many grammars of one server may be in the making; requests beyond that go without.
_MAX_MAKING: Final = 32
_POOL: Final = ThreadPoolExecutor(2, thread_name_prefix="constraint")


class ConstraintEncoding(Struct, frozen=True):
    """How a server is told a constraint: for which engine it is written, and in which fields of the request it goes."""

    target: Target
    fields: Callable[[Compiled], dict[str, Any]]


def vllm_tag(found: Compiled) -> dict[str, Any]:
    """A structural tag in vLLM's field."""
    return {"structured_outputs": {"structural_tag": found.text}}


def sglang_tag(found: Compiled) -> dict[str, Any]:
    """A structural tag in SGLang's field."""
    return {"response_format": msgspec.Raw(found.text.encode())}


def constrains_itself(generation: GenerationRequest) -> bool:
    """Whether the client has a constraint of its own in the request."""
    return not _CONSTRAINING.isdisjoint(generation.fields)


class Grammars:
    """Makes the grammars of one server off the event loop; `name` is the server's."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._making: dict[bytes, asyncio.Future[Compiled | None]] = {}  # by the key

    async def made(
        self, constraint: Constraint, target: Target, key: bytes, vocabulary: Vocabulary | None = None
    ) -> Compiled | None:
        """The constraint as the server takes it; None where it cannot be said, or takes too long."""
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
    """A server that is sent the constraint of a generation, where it takes one."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, timeouts: Timeouts | None = None) -> None:
        super().__init__(url, headers, timeouts)
        self._unwilling: set[bytes] = set()  # the keys of constraints that the server has refused
        self._grammars = Grammars(self.name)

    def stream(self, generation: GenerationRequest) -> Deltas:
        """See `Upstream`."""
        constraint = generation.constraint
        spelling = self._spelling(constraint) if constraint is not None else None
        if constraint is None or spelling is None or constrains_itself(generation):
            return self._plain(generation)
        return self._constrained(generation, constraint, spelling)

    def _plain(self, generation: GenerationRequest) -> Deltas:
        if generation.timings is not None:
            generation.timings.sends()
        return self._deltas(generation, {})

    async def _constrained(
        self, generation: GenerationRequest, constraint: Constraint, spelling: ConstraintEncoding
    ) -> Deltas:
        key, begun = constraint_key(constraint), False
        found = None
        if key not in self._unwilling:
            found = await self._grammars.made(constraint, spelling.target, key)
        if found is not None:
            if generation.timings is not None:
                generation.timings.sends(is_constrained=True)
            try:
                async with aclosing(self._deltas(generation, spelling.fields(found))) as deltas:
                    async for batch in deltas:
                        begun = True
                        yield batch
                return
            except (RequestError, UpstreamError) as error:
                if begun or not _refuses(error):
                    raise
                self._unwilling.add(key)
                log.warning("%s refuses the grammar of a request and is asked without it", self.name)
                log.debug("%s says: %.500r", self.name, str(error))
        async with aclosing(self._plain(generation)) as deltas:
            async for batch in deltas:
                yield batch

    def _spelling(self, constraint: Constraint) -> ConstraintEncoding | None:
        """How this server is told the constraint; None where it cannot be."""
        raise NotImplementedError

    def _deltas(self, generation: GenerationRequest, constraining: Mapping[str, Any]) -> Deltas:
        """Ask, with these fields added to the request."""
        raise NotImplementedError


def _refuses(error: RequestError | UpstreamError) -> bool:
    """Whether a server's error speaks of the constraint. A server that is down, or slow, is not asked again."""
    if isinstance(error, UpstreamError) and error.fault != "status":
        return False
    return _REFUSAL.search(str(error)) is not None
