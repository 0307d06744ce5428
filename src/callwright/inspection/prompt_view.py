"""A prompt as the model saw it: control tokens separate from text, and the place that describes the tools."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Literal

from msgspec import Struct

from callwright.turn.records import RecordedTool

# A description of a tool is not longer than that before the first word of its parameters.
_FAR: Final = 20_000


class PromptPiece(Struct):
    """Neighbouring characters of a prompt. `tools`: among them tools are described; `prefill`: the begin of the
    answer.
    """

    text: str
    kind: Literal["control", "text", "tools", "prefill"]


def prompt_pieces(
    prompt: str, controls: Sequence[tuple[int, int]], prefill: str, tools: Sequence[RecordedTool]
) -> list[PromptPiece]:
    """The pieces of a prompt, of which `controls` are control tokens; together they are the prompt."""
    begin, end = _described(prompt, tools)
    answer = len(prompt) - len(prefill) if prefill and prompt.endswith(prefill) else len(prompt)
    cuts = {0, len(prompt), begin, end, answer}
    for control in controls:
        cuts.update(control)
    ordered = sorted(cut for cut in cuts if 0 <= cut <= len(prompt))
    starts = dict(controls)
    found: list[PromptPiece] = []
    until = 0
    for first, last in pairwise(ordered):
        if first in starts:
            until = starts[first]
        kind: Literal["control", "text", "tools", "prefill"] = "control" if first < until else "text"
        if first >= answer:
            kind = "prefill"
        elif begin <= first < end:
            kind = "tools"
        if found and found[-1].kind == kind and kind != "control":
            found[-1].text += prompt[first:last]
        else:
            found.append(PromptPiece(prompt[first:last], kind))
    return found


def _described(prompt: str, tools: Sequence[RecordedTool]) -> tuple[int, int]:
    """From the line that describes the first tool to the last word about any; an empty range if none is found."""
    begins: list[int] = []
    ends: list[int] = []
    for tool in tools:
        at = _word(prompt, tool.name, 0, len(prompt))
        words = [*_names(tool.parameters), *([tool.description[:60]] if tool.description else [])]
        places = [place for word in words if (place := _word(prompt, word, at, at + _FAR)) >= 0] if at >= 0 else []
        if places:
            begins.append(at)
            ends.append(max(places))
    if not begins:
        return 0, 0
    begin = prompt.rfind("\n", 0, min(begins)) + 1
    end = prompt.find("\n", max(ends))
    return begin, len(prompt) if end < 0 else end


def _word(prompt: str, word: str, begin: int, end: int) -> int:
    found = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(prompt, begin, end)
    return found.start() if found else -1


def _names(parameters: Mapping[str, Any] | None) -> list[str]:
    properties = (parameters or {}).get("properties")
    return [name for name in properties if isinstance(name, str) and name] if isinstance(properties, Mapping) else []
