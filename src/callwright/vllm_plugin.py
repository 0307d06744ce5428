"""Tool parsers for vLLM: one for each dialect, called `callwright_` and the dialect's name.

    vllm serve MODEL --enable-auto-tool-choice \\
        --tool-parser-plugin callwright.vllm_plugin --tool-call-parser callwright_hermes

vLLM loads this module in its own process and needs vLLM 0.32 or newer. The whole output and the
stream are read by the same reader, calls are repaired and checked against the request's tools, and a demanded call is
held by a grammar in the dialect's own format. There are no retries, unlike in the gateway, and
problems are only logged, because vLLM's answer has no field for them. vLLM parses reasoning itself: thoughts in the
text stay there unchanged.
"""

import logging
from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec.structs import replace
from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.renderers.chat_utils import make_tool_call_id
from vllm.sampling_params import StructuredOutputsParams
from vllm.tool_parsers.abstract_tool_parser import ToolParser, ToolParserManager

from callwright.api import Parser
from callwright.constraints.compile import compiled, constraint_key, constraint_of
from callwright.dialects.base import dialect_names
from callwright.errors import RequestError
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Markup,
    Problem,
    ReasoningDelta,
)
from callwright.openai_format.messages import read_conversation

log = logging.getLogger("callwright.vllm")

if not hasattr(ToolParser, "engine_based_streaming"):
    raise ImportError("callwright.vllm_plugin needs vLLM 0.32 or newer: older ones do not notify a parser of the end.")


class CallwrightToolParser(ToolParser):  # type: ignore[misc]  # vLLM is not there when types are checked
    """What all of them do; a subclass names its `dialect`. One is made for each request."""

    dialect: ClassVar[str]
    # vLLM calls `finish_streaming` at the end of a stream.
    engine_based_streaming = True
    # A demanded call is written in the dialect's format, and read here like any other.
    supports_required_and_named = False

    def __init__(self, tokenizer: Any, tools: Sequence[Any] | None = None) -> None:
        super().__init__(tokenizer, list(tools or ()))
        self._reads: _Reading | None = None

    def adjust_request(self, request: Any) -> Any:
        """Hold a demanded call to the dialect's format. Raises `ValueError`, which vLLM answers with 400, for tools
        that cannot be.
        """
        if not request.tools or request.tool_choice == "none":
            return request
        request.skip_special_tokens = False
        request.spaces_between_special_tokens = False
        tools, choice = _tools(request.tools), _choice(request.tool_choice)
        try:
            asked = replace(read_conversation((), tools, choice), parallel_tool_calls=_in_parallel(request))
            Parser(self.dialect, tools=tools, tool_choice=choice)
        except RequestError as error:
            raise ValueError(str(error)) from error
        constraint = constraint_of(self.dialect, asked, None)
        if constraint is None:
            return request
        found = compiled(constraint, "xgrammar", constraint_key(constraint))
        if found is None:
            log.warning("A required call is not constrained: the grammar of its tools cannot be built.")
            return request
        request.structured_outputs = StructuredOutputsParams(structural_tag=found.text)
        if hasattr(request, "response_format"):  # a demanded call is the whole answer
            request.response_format = None
        else:
            request.text = None
        return request

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """The calls of a whole output. A truncated one is left in the text: it must not be run."""
        reading = _Reading(self.dialect, self.tools, request, whole=True)
        pieces = [*reading.feed(model_output), *reading.finish()]
        calls = [
            ToolCall(function=FunctionCall(name=name, arguments=arguments))
            for index, (name, arguments) in reading.calls.items()
            if index in reading.whole
        ]
        content = "".join(piece.content or "" for piece in pieces) + reading.cut(model_output)
        return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=content or None)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        """The delta that is certain after `delta_text`, or None."""
        if self._reads is None:
            self._reads = _Reading(self.dialect, self.tools, request)
        return _joined(self._reads.feed(delta_text))

    def finish_streaming(self) -> DeltaMessage | None:
        """The delta held back until the end of the stream, or None."""
        reading, self._reads = self._reads, None
        return _joined(reading.finish()) if reading is not None else None


class _Reading:
    """One output, as vLLM's deltas. Without tools, or under `none`, all of it is text. `whole`: it is fed in one
    piece, and `cut` may be called.
    """

    def __init__(self, dialect: str, tools: Sequence[Any], request: Any, *, whole: bool = False) -> None:
        self.calls: dict[int, tuple[str, str]] = {}
        self.whole: set[int] = set()
        self._thinks = False
        self._markup = ""  # before a thought it is text, before a call nothing
        self._parser: Parser | None = None
        if tools and request.tool_choice != "none":
            self._parser = Parser(
                dialect,
                tools=_tools(tools),
                tool_choice=_choice(request.tool_choice),
                parallel_tool_calls=_in_parallel(request),
                trace=whole,
            )

    def feed(self, text: str) -> list[DeltaMessage]:
        """The deltas of a piece of the output."""
        if self._parser is None:
            return [DeltaMessage(content=text)] if text else []
        return self._deltas(self._parser.feed(text))

    def finish(self) -> list[DeltaMessage]:
        """The remaining deltas at the end of the output. vLLM does not report why it ended."""
        return self._deltas(self._parser.finish()) if self._parser is not None else []

    def cut(self, output: str) -> str:
        """The text of truncated calls, with the markup around it."""
        broken = {number for number, index in enumerate(self.calls) if index not in self.whole}
        if self._parser is None or not broken:
            return ""
        texts, open_from, takes = [], 0, False
        for span in self._parser.spans():
            if span.part == "markup" and span.call is None:
                continue
            if takes and span.call not in broken:
                texts.append(output[open_from : span.begin])
            if not takes or span.call not in broken:
                takes = span.call in broken
            if not takes:
                open_from = span.end
        return "".join([*texts, output[open_from:]] if takes else texts)

    def _deltas(self, events: Sequence[Event]) -> list[DeltaMessage]:
        deltas: list[DeltaMessage] = []
        for event in events:
            match event:
                case Markup(text):
                    if self._thinks:
                        deltas.append(DeltaMessage(content=text))
                        self._thinks = False
                    else:
                        self._markup += text
                    continue
                case ReasoningDelta(text):
                    deltas.append(DeltaMessage(content=self._markup + text))
                    self._thinks = True
                case ContentDelta(text):
                    deltas.append(DeltaMessage(content=text))
                case CallStarted(index, name):
                    self.calls[index] = (name, "")
                    deltas.append(_call(index, DeltaFunctionCall(name=name, arguments=""), make_tool_call_id()))
                case ArgumentsDelta(index, text):
                    name, before = self.calls[index]
                    self.calls[index] = (name, before + text)
                    deltas.append(_call(index, DeltaFunctionCall(arguments=text)))
                case CallEnded(index, complete):
                    if complete:
                        self.whole.add(index)
                case Problem(kind=kind):
                    log.info("an output is read with the problem %s", kind)
                    continue
            self._markup = ""
        return deltas


def _call(index: int, function: DeltaFunctionCall, id_: str | None = None) -> DeltaMessage:
    begun: dict[str, Any] = {"id": id_, "type": "function"} if id_ else {}
    return DeltaMessage(tool_calls=[DeltaToolCall(index=index, function=function, **begun)])


def _joined(deltas: Sequence[DeltaMessage]) -> DeltaMessage | None:
    """Deltas of one piece as one; the order of text and calls in it is lost, as it is in vLLM's own."""
    if not deltas:
        return None
    calls: dict[int, DeltaToolCall] = {}
    for call in (call for delta in deltas for call in delta.tool_calls):
        if (first := calls.setdefault(call.index, call)) is not call:
            first.function.arguments = (first.function.arguments or "") + (call.function.arguments or "")
    content = "".join(delta.content or "" for delta in deltas)
    return DeltaMessage(content=content or None, tool_calls=list(calls.values()))


def _tools(tools: Sequence[Any]) -> list[dict[str, Any]]:
    """vLLM's tools, of Chat or of Responses, in OpenAI's form."""
    functions = [getattr(tool, "function", tool) for tool in tools if tool.type == "function"]
    return [{"type": "function", "function": _function(function)} for function in functions]


def _function(function: Any) -> dict[str, Any]:
    named = ("description", "parameters", "strict")
    given = {name: value for name in named if (value := getattr(function, name, None)) is not None}
    return {"name": function.name, **given}


def _choice(choice: Any) -> str | dict[str, Any]:
    """vLLM's choice of a tool in OpenAI's form."""
    if choice is None or isinstance(choice, str):
        return choice or "auto"
    return {"type": "function", "function": {"name": getattr(choice, "function", choice).name}}


def _in_parallel(request: Any) -> bool:
    return getattr(request, "parallel_tool_calls", None) is not False


def _register() -> None:
    for name in dialect_names():
        made = type(f"Callwright_{name}", (CallwrightToolParser,), {"dialect": name, "__module__": __name__})
        ToolParserManager.register_module(f"callwright_{name}", module=made)


_register()
