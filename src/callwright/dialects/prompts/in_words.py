"""Tools and their outputs in plain words, for chat templates that describe neither."""

from collections.abc import Sequence
from typing import Final

from callwright.conversation import Call, Conversation
from callwright.layout.calls import CallLayout
from callwright.prompt import PromptBuilder

_EXAMPLE: Final = Call("function_name", '{"parameter_name": "value"}')


def in_words(outputs: Sequence[tuple[str, str]]) -> str:
    """Outputs of tools, pairs of tool name and text, in plain words."""
    return "\n\n".join(f"Result of {name or 'the tool'}:\n{text}" for name, text in outputs)


def tell_tools(
    out: PromptBuilder, conversation: Conversation, calls: CallLayout, controls: tuple[str, ...] = ()
) -> None:
    """Append the tools and the form of a call in words, for templates that describe neither."""
    out.text(
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nThe functions, one a line:\n",
        tool_lines(conversation),
        "\n\nTo call a function, write exactly this, with its name and arguments, and nothing behind it:\n",
    )
    put_example(out, calls, controls)


def put_example(out: PromptBuilder, calls: CallLayout, controls: tuple[str, ...] = ()) -> None:
    """Append a call that shows the form."""
    calls.put(out, [_EXAMPLE], controls=controls)


def tool_lines(conversation: Conversation) -> str:
    """The tools as JSON, one a line."""
    return "\n".join(tool.openai_json for tool in conversation.tools)
