"""Any OpenAI-compatible chat endpoint: `POST {url}/chat/completions`.

Fields that a server does not support are not sent. `chat_answers` reads its answers; an error of the server's own
parser in place of a call is read here.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from callwright.constraints.compile import Compiled
from callwright.constraints.constraint import Constraint
from callwright.constraints.structural_tag import json_format
from callwright.conversation import NamedTool
from callwright.errors import RequestError, UpstreamError
from callwright.memo.prefixes import SharedList, fold
from callwright.schema.plain import without_keywords
from callwright.settings import bounds
from callwright.settings.bounds import Bounds
from callwright.tolerant_json.codec import encode
from callwright.upstreams.base import (
    NO_CONSTRAINTS,
    NO_TOOL_CHOICE,
    Delta,
    Deltas,
    FinishDelta,
    GenerationRequest,
    Server,
    UnparsedCallDelta,
)
from callwright.upstreams.chat_answers import ChatAnswer
from callwright.upstreams.constrained import ConstrainedUpstream, ConstraintEncoding, sglang_tag, vllm_tag
from callwright.upstreams.http import Timeouts

# The dialect whose calls are plain JSON. A JSON Schema can enforce only such calls, so servers that accept nothing else
# get one for every dialect: each parses plain JSON if a call is required.
_JSON: Final = "json"
# Servers whose `tool_choice` must be a string. For an object llama.cpp assumes `auto`, LM Studio answers 400.
_CHOICE_IS_A_WORD: Final = ("llamacpp", "lmstudio")
# Errors of a server's tool parser: Ollama's quotes the arguments, llama.cpp's up to 2026 the rest of the text, a later
# llama.cpp's nothing.
_UNREAD: Final = (
    re.compile(r"error parsing tool call: raw='(?P<text>.*)', err=", re.DOTALL),
    re.compile(r"Failed to parse input at pos \d+(?:: (?P<text>.*))?", re.DOTALL),
    re.compile(r"output that does not match the expected \S+ format(?P<text>)"),
)
# Errors of servers that compile the schemas of all tools into one grammar, as llama.cpp and LM Studio do, and the
# keywords with which that fails: look-ahead in a pattern, `maxLength: 65536` (llama.cpp issues 22314, 26596).
_UNCOMPILED: Final = re.compile(r"grammar|json schema", re.IGNORECASE)
_BOUNDS: Final = frozenset(("pattern", "minLength", "maxLength", "minItems", "maxItems"))

log = logging.getLogger("callwright.upstreams")


class ChatUpstream(ConstrainedUpstream):
    """A chat endpoint, for the modes native and prompt. `server`: its kind, for known deviations."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        bounds: Bounds | None = None,
        *,
        server: Server = "openai",
    ) -> None:
        self._server: Server = server
        super().__init__(url, headers, timeouts, bounds)
        self._kind = server
        self._compiles_bounds = True  # False after it refused tools for the bounds in their schemas

    def _spellings(self, constraint: Constraint) -> Sequence[ConstraintEncoding]:
        if self._server in NO_CONSTRAINTS:
            return ()
        if self._server not in _OWN_FORMAT:
            return (_BY_SCHEMA,)
        if constraint.dialect != _JSON:
            return (_OWN_FORMAT[self._server],)
        return (_BY_TAGGED_SCHEMA[self._server], _BY_SCHEMA)

    def _deltas(self, generation: GenerationRequest, constraining: Mapping[str, Any]) -> Deltas:
        bounded = self._compiles_bounds
        body: dict[str, Any] = {
            **generation.fields,
            "model": generation.model,
            "messages": _encode_shared(generation.messages or []),
            **streaming(generation),
            **_offered(generation, self._server, bounded=bounded),
            **constraining,
        }
        reader = ChatAnswer(self.name, bounds.MAX_ANSWER_CALLS)

        def instead(error: RequestError | UpstreamError) -> Deltas | None:
            """The answer to the tools without bounds, if the server cannot compile them; or the known parts of an
            answer whose call the server's parser could not read.
            """
            if not reader.has_begun and _UNCOMPILED.search(str(error)) and _has_bounds(generation.tools):
                self._compiles_bounds = not bounded  # if it refuses them without bounds too, there is another reason
                if not bounded:
                    return None
                log.warning("%s refuses the schemas of tools and is asked without their bounds", self.name)
                log.debug("%s says: %.500r", self.name, str(error))
                return self._deltas(generation, constraining)
            if isinstance(error, RequestError) or not _is_unread(error.said):
                return None
            if not (generation.streamed or reader.has_begun):  # a stream would contain the text before the call
                return self._deltas(replace(generation, streamed=True), constraining)
            unread = _unread(error.said, said=reader.has_said)
            return _just([unread, FinishDelta("stop")]) if unread is not None else None

        return self.events("/chat/completions", body, reader, generation.headers, instead)


async def _just(deltas: Sequence[Delta]) -> Deltas:
    yield deltas


def streaming(generation: GenerationRequest) -> dict[str, Any]:
    """The request fields that turn streaming on or off."""
    return {"stream": True, "stream_options": {"include_usage": True}} if generation.streamed else {"stream": False}


def _encode_shared(objects: list[dict[str, Any]]) -> msgspec.Raw | list[dict[str, Any]]:
    """Messages or tools as JSON, of which those that are shared with an earlier request are not written again."""
    if type(objects) is not SharedList:
        return objects
    return msgspec.Raw(b"[%b]" % fold(objects, b"", _encode_more))


def _encode_more(before: bytes, objects: Sequence[dict[str, Any]], start: int) -> bytes:
    return b",".join([*([before] if before else []), *map(encode, objects[start:])])


def _offered(generation: GenerationRequest, server: Server, *, bounded: bool = True) -> dict[str, Any]:
    """The fields `tools` and `tool_choice`. A server that ignores a choice is sent only the tools that it allows.

    `bounded`: with the bounds in their schemas. The check holds calls to them in any case.
    """
    if not generation.tools:
        return {}
    tools, choice = generation.tools, generation.tool_choice
    conversation = generation.conversation
    wanted = conversation.allowed_tools
    if isinstance(conversation.tool_choice, NamedTool):
        by_word = server in _CHOICE_IS_A_WORD
        wanted, choice = ((conversation.tool_choice.name,), "required") if by_word else (None, choice)
    if server in NO_TOOL_CHOICE:
        wanted, choice = () if choice == "none" else wanted, None
    if wanted is not None and server != "openai":
        tools = [tool for tool in tools if tool["function"]["name"] in wanted]
    if not bounded:
        tools = list(map(_without_bounds, tools))
    offered: dict[str, Any] = {"tools": _encode_shared(tools)} if tools else {}
    return offered | {"tool_choice": choice} if tools and choice is not None else offered


def _has_bounds(tools: list[dict[str, Any]] | None) -> bool:
    return any(_without_bounds(tool) is not tool for tool in tools or ())


def _without_bounds(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool as Chat Completions has it, without bounds in its schema; the same object if it has none."""
    schema = tool["function"].get("parameters")
    plainer = without_keywords(schema, _BOUNDS)
    return tool if plainer is schema else {**tool, "function": {**tool["function"], "parameters": plainer}}


def _is_unread(words: str) -> bool:
    """Whether a server's error reports that its own parser could not read a call."""
    return any(pattern.search(words) for pattern in _UNREAD)


def _unread(words: str, *, said: bool) -> UnparsedCallDelta | None:
    """The part of the call that such an error quotes; None if there is nothing to read.

    `said`: the text arrived before the error.
    """
    for pattern in _UNREAD:
        if found := pattern.search(words):
            text = "" if said and pattern is not _UNREAD[0] else found["text"] or ""
            return UnparsedCallDelta(text, words.partition(":")[0]) if text or said else None
    return None


def _schema(found: Compiled) -> dict[str, Any]:
    schema = {"name": "calls", "schema": msgspec.Raw(found.text.encode()), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _tagged(found: Compiled) -> Compiled:
    """A schema as a tag, in which its white space can be bounded."""
    tag = {"type": "structural_tag", "format": json_format(msgspec.Raw(found.text.encode()))}
    return Compiled(encode(tag).decode())


def _shown_vllm_tag(found: Compiled) -> dict[str, Any]:
    """The tag, and the markers of calls in the text: in some vocabularies they are special tokens, which vLLM leaves
    out.
    """
    return {**vllm_tag(found), "skip_special_tokens": False, "spaces_between_special_tokens": False}


def _shown_sglang_tag(found: Compiled) -> dict[str, Any]:
    return {**sglang_tag(found), "skip_special_tokens": False}


_BY_SCHEMA: Final = ConstraintEncoding("json", _schema)
_BY_TAGGED_SCHEMA: Final[Mapping[Server, ConstraintEncoding]] = {
    "vllm": ConstraintEncoding("json", lambda found: vllm_tag(_tagged(found))),
    "sglang": ConstraintEncoding("json", lambda found: sglang_tag(_tagged(found))),
}
# Servers that can enforce the dialect's own format in a chat answer. llama.cpp's grammars could, too; but markers of
# calls that are control tokens are missing from its chat answers.
_OWN_FORMAT: Final[Mapping[Server, ConstraintEncoding]] = {
    "vllm": ConstraintEncoding("xgrammar", _shown_vllm_tag),
    "sglang": ConstraintEncoding("xgrammar", _shown_sglang_tag),
}
