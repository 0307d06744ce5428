"""Arguments in a stream, of tools with any schema: what was sent stays, however they are cut the same is sent, and what
is said to fit is valid.
"""

import jsonschema

from callwright.calls.check import arguments_problem
from callwright.calls.streaming_arguments import StreamingArguments
from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool
from fuzz import values
from fuzz.words import JSON_ATOMS, TEXT_ATOMS, spliced
from tests.support.choices import Choices
from tests.support.properties import strict_json

__all__ = ["run"]

NAMES = tuple(f'"{name}": ' for name in ("path", "filepath", "query", "text", "content", "limit", "X", "file_name"))
ATOMS = (*JSON_ATOMS, *NAMES, *TEXT_ATOMS)


def run(draw: Choices) -> None:
    """See the module."""
    sane = not draw.once_in(4)
    schema = values.arguments(draw, sane=sane)
    value = values.instance(draw, schema, schema)
    text = values.written(draw, draw.one((value, value, {"arguments": value}, [value], [value, 1])))
    if draw.once_in(2):
        text = spliced(draw, text, ATOMS)
    if draw.once_in(8):
        text = values.written(draw, text)
    tools = Toolset([FunctionTool("use", None, schema), FunctionTool("ping", None, None)])
    cut = draw.once_in(4)
    whole = _streamed(tools, [text], cut)
    assert _streamed(tools, list(text), cut) == _streamed(tools, draw.cuts(text), cut) == whole
    sent, complete, _ = whole
    if complete and arguments_problem("use", sent, tools) is None:
        given = strict_json(sent)
        if sane:
            jsonschema.validate(given, schema, jsonschema.Draft202012Validator)


def _streamed(tools: Toolset, parts: list[str], cut: bool) -> tuple[str, bool, list[object]]:
    live = StreamingArguments("use", tools)
    sent = "".join([live.feed(part) for part in parts]) + live.finish(cut=cut)
    assert sent == live.text
    return sent, live.complete, [*live.problems]
