"""Checks whether a reader of calls reads back the calls that a template rendered from the probes."""

from collections.abc import Sequence
from functools import cache

from msgspec import Struct

from callwright.calls.toolset import Toolset
from callwright.chat_template.probes import TOOLS
from callwright.conversation import Call
from callwright.dialects.base import FORMATS, CallFormat, ParsedBy
from callwright.openai_format.tools import offered_tools
from callwright.reading.collect import collect
from callwright.reading.parser import OutputParser, PassThrough
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_format import read_answer
from callwright.streaming.reader import Parse, StreamReader
from callwright.tolerant_json.codec import same_json


class _Reads(Struct, frozen=True):
    """Outputs with calls in one format."""

    calls: CallFormat | ParsedBy

    def parse(self, source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
        """Read one output; see `read_answer`."""
        return read_answer(self.calls, AnswerText(source, tools, self.calls.layout), start, FORMATS)


def reads_back(reader: CallFormat | ParsedBy, text: str, calls: Sequence[Call], said: str = "") -> bool:
    """Whether a text is read as these calls, with the content `said`."""
    parser = OutputParser(_Reads(reader), _tools(), PassThrough(), "assistant")
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
