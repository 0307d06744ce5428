"""Lines of recorded turns as `callwright replay` reads them: one is refused in words, or read again."""

import json
from typing import Any

from callwright.errors import RequestError
from callwright.turn.reread import RecordError, read_record, reread
from fuzz import values, words
from tests.support.cases import TOOLS
from tests.support.choices import Choices

__all__ = ["run"]


def run(draw: Choices) -> None:
    """See the module."""
    record = _record(draw)
    for _ in range(draw.number(3)):
        record = values.mutated(draw, record)
    line = json.dumps(record, ensure_ascii=draw.once_in(2)).encode("utf-8", "surrogatepass")
    if draw.once_in(8):
        at = draw.number(0xFFFF) % (len(line) + 1)
        line = line[:at] + draw.bytes(12) + line[at + draw.number(4) :]
    try:
        for one in reread(read_record(line), draw.one((None, None, "hermes", "json"))):
            assert one is None or isinstance(one.differing, list)
    except (RecordError, RequestError) as error:
        assert str(error)


def _record(draw: Choices) -> Any:
    dialect = draw.one((None, "hermes", "harmony", "json", "qwen3_coder"))
    output = words.output(draw, dialect or "json")
    deltas: list[Any] = [[0.1, {"type": "TextDelta", "text": piece}] for piece in draw.cuts(output)[:20]]
    call = {"type": "ToolCallDelta", "index": 0, "id": "c", "name": "ping", "arguments": "{}"}
    deltas += draw.one(([], [[0.2, call]], [[0.2, {"type": "Stopped", "reason": "stop"}]]))
    deltas += draw.one(([], [[0.2, {"type": "UnreadCall", "text": output, "told": "x"}]]))
    attempt = {
        "mode": draw.one(("native", "prompt", "raw")),
        "ended": draw.one(("whole", "failed", "left")),
        "dialect": dialect,
        "deltas": deltas,
        "events": [
            {"type": "ContentDelta", "text": "a"},
            {"type": "CallStarted", "index": 0, "name": "ping"},
            {"type": "CallEnded", "index": 0},
        ],
        "start": draw.one((None, "assistant", "reasoning")),
        "prefill": draw.one(("", "", "<think>")),
    }
    tools: list[Any] = [{"name": name, **tool} for name, tool in TOOLS.items()][: draw.number(4)]
    custom = {"name": "patch", "custom": True, "grammar": ["lark", draw.one(('start: "a"', "start: ("))]}
    return {
        "version": 1,
        "callwright": "0.1.0",
        "time": "2026-01-01T00:00:00Z",
        "model": "m",
        "upstream": "u",
        "upstream_model": "m",
        "attempts": [attempt],
        "tools": [*tools, custom] if draw.once_in(4) else tools,
        "tool_choice": draw.one(("auto", "none", "required", {"name": "ping"})),
        "aliases": draw.one(([], [["a", "b"]])),
        "infer": draw.one(([], [["ping", ["a"]]])),
        "parallel_tool_calls": draw.once_in(2),
    }
