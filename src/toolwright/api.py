"""The library: parse outputs, render prompts, write calls. Tools and messages are OpenAI's own dicts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from toolwright.check import Check
from toolwright.collect import Turn, collect
from toolwright.conversation import AssistantTurn, Call, Conversation
from toolwright.dialects.base import dialect_names, get_dialect, read_options
from toolwright.events import Event, FinishReason
from toolwright.parser import OutputParser, PassThrough
from toolwright.prompt import Prompt
from toolwright.schema.strict import strict_problems
from toolwright.schema.typescript import declaration
from toolwright.toolset import Toolset
from toolwright.wire.chat import read_messages
from toolwright.wire.tools import read_tool_choice, read_tools

__all__ = ["CheckMode", "Parser", "dialects", "parse", "render", "strict_problems", "typescript", "write"]

Json: TypeAlias = Mapping[str, Any]
CheckMode = Literal["repair", "verbatim"]


class Parser(OutputParser):
    """Reads one output of a model as it streams.

    `tools` are function tools in the Chat or the Responses shape; `tool_choice` is OpenAI's, in either shape.
    `start` says where the output begins, if not at the dialect's usual place: `assistant`, `reasoning` (the prompt
    left it open) or `message`. `check="verbatim"` reports what the model wrote and judges nothing.

    Raises `RequestError` for an unknown dialect and for tools that are no tools. What the model writes raises nothing.
    """

    def __init__(
        self,
        dialect: str,
        *,
        tools: Sequence[Json] | None = None,
        tool_choice: str | Json | None = None,
        parallel_tool_calls: bool = True,
        start: str | None = None,
        check: CheckMode = "repair",
    ) -> None:
        choice = read_tool_choice("auto" if tool_choice is None else tool_choice, ())
        toolset = Toolset(read_tools(tools), choice, parallel=parallel_tool_calls)
        filter_ = PassThrough() if check == "verbatim" else Check(toolset)
        super().__init__(get_dialect(dialect), toolset, filter_, start or "assistant")


def parse(
    output: str | Iterable[str],
    *,
    dialect: str,
    tools: Sequence[Json] | None = None,
    tool_choice: str | Json | None = None,
    parallel_tool_calls: bool = True,
    finish_reason: FinishReason = "stop",
    start: str | None = None,
    check: CheckMode = "repair",
) -> Turn:
    """Read a whole output, given as one string or in pieces; see `Parser` for the arguments."""
    parser = Parser(
        dialect,
        tools=tools,
        tool_choice=tool_choice,
        parallel_tool_calls=parallel_tool_calls,
        start=start,
        check=check,
    )
    events: list[Event] = []
    for piece in [output] if isinstance(output, str) else output:
        events += parser.feed(piece)
    return collect(events + parser.finish(finish_reason))


def render(
    messages: Sequence[Json],
    *,
    dialect: str,
    tools: Sequence[Json] | None = None,
    tool_choice: str | Json | None = None,
    **options: object,
) -> Prompt:
    """The prompt for a raw completion endpoint. `options` are the dialect's own; a wrong one raises `RequestError`."""
    ours = read_tools(tools)
    conversation = Conversation(
        items=read_messages(messages), tools=ours, tool_choice=read_tool_choice(tool_choice, ours)
    )
    return get_dialect(dialect).render(conversation, read_options(dialect, options))


def write(calls: Sequence[Json], *, dialect: str, tools: Sequence[Json] | None = None) -> str:
    """What a model of this family would write to make these calls: `[{"name", "arguments"}]`, arguments as value or
    JSON.
    """
    read_tools(tools)
    return get_dialect(dialect).write(AssistantTurn(calls=[_call(call) for call in calls]))


def _call(given: Json) -> Call:
    arguments = given.get("arguments", {})
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return Call(given["name"], text)


def typescript(tool: Json) -> str:
    """One tool as Harmony's TypeScript: its comment lines and its `type … ;`."""
    (function,) = read_tools([tool])
    return declaration(function)


def dialects() -> tuple[str, ...]:
    """The names of all dialects."""
    return dialect_names()
