"""Whether a reader of calls reads what a template wrote of the probes as it was."""

from collections.abc import Sequence
from functools import cache

from callwright.calls.toolset import Toolset
from callwright.chat_template.probes import TOOLS
from callwright.collector import collect
from callwright.conversation import Call
from callwright.dialects.base import CallFormat
from callwright.openai_format.tools import offered_tools
from callwright.parser import OutputParser, PassThrough
from callwright.tolerant_json.codec import same_json

__all__ = ["reads_back"]


def reads_back(reader: CallFormat, text: str, calls: Sequence[Call], said: str = "") -> bool:
    """Whether a text is read as these calls, and a text beside them."""
    parser = OutputParser(reader, _tools(), PassThrough(), "assistant")
    turn = collect(parser.finish("stop", text))
    return (
        (turn.content or "").strip() == said
        and len(turn.calls) == len(calls)
        and all(
            found.name == call.name and same_json(found.arguments, call.arguments)
            for found, call in zip(turn.calls, calls, strict=True)
        )
    )


@cache
def _tools() -> Toolset:
    return Toolset(offered_tools(TOOLS, "tools", "chat"))
