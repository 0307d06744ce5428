"""Mistral's older form: `[TOOL_CALLS]` and a list of `{"name": …, "arguments": {…}, "id": …}`.

The format of Mistral 7B v0.3, Nemo, Large 2407 and Mixtral. Source: the chat template of Mistral-Nemo-Instruct-2407:
the tools stand before the last user turn, which begins with the system text.
"""

import json
from collections.abc import Sequence
from typing import Final

from toolwright.conversation import Call
from toolwright.dialects._frame import Result
from toolwright.dialects._marked import MarkedReader
from toolwright.dialects._mistral import HISTORY, MARKS, call_id, frame
from toolwright.dialects.base import RenderOptions
from toolwright.prompt import PromptBuilder
from toolwright.source import Source, Steps
from toolwright.toolset import Toolset

__all__ = ["Options", "aliases", "messages", "models", "parse", "render", "source", "stop_token_ids", "stops", "write"]

aliases = ("mistral", "mistral_nemo")
models = "Mistral 7B v0.3, Nemo, Large 2407, Mixtral"
names = (
    "mistral-7b-*v0.3*",
    "mistral-nemo*",
    "mistral-large*",
    "mixtral*",
    "mistral:7b*",
    "mistral-small-24*",
    "mistral-small3.1*",
)
template = ("[TOOL_CALLS]",)
history = HISTORY
source = "chat template of Mistral-Nemo-Instruct-2407"
stops = ("</s>",)
stop_token_ids = (2,)

Options = RenderOptions


def _calls(out: PromptBuilder, calls: Sequence[Call], first: int) -> None:
    out.control("[TOOL_CALLS]").text(" [")
    for number, call in enumerate(calls, first):
        name = json.dumps(call.name, ensure_ascii=False)
        out.text(", " if number > first else "", f'{{"name": {name}, "arguments": ').json(call.arguments or "{}")
        out.text(f', "id": "{call_id(number)}"}}')
    out.text("]")


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.text(f' {{"content": {result.text}, "call_id": "{call_id(result.number)}"}}')


_FRAME: Final = frame(_calls, _results, system=False, space=" ", place="before last user")

render = _FRAME.render
messages = _FRAME.messages
write = _FRAME.write


def parse(source: Source, start: str, tools: Toolset) -> Steps[None]:
    """Events of an output."""
    return MarkedReader(source, tools, MARKS).read(start)
