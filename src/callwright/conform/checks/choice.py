"""Which tools are called: `tool_choice` in all forms, parallel calls, strict schemas, late tools, custom tools."""

from collections.abc import Mapping
from typing import Final

from callwright.conform.answer import Answer, Body
from callwright.conform.check import HOLDS, Check, Judge, Verdict, does_not
from callwright.conform.checks.asks import (
    ANSWERS,
    ASKED,
    BOTH,
    CALLING,
    REQUIRED,
    STRICT,
    TIME,
    TWO,
    assistant,
    call,
    choice_of,
    guides,
    output,
    sources,
    tool,
    user,
)
from callwright.eval.wires import WireName
from callwright.schema.validate import validator_of

_CHOICE: Final[Mapping[WireName, str]] = {
    **ANSWERS,
    "messages": sources(messages="agents-and-tools/tool-use/define-tools")["messages"],
}
_OPENAI_CHOICE: Final[Mapping[WireName, str]] = {wire: page for wire, page in _CHOICE.items() if wire != "messages"}
_PARALLEL: Final = guides("function-calling#parallel-function-calling", "agents-and-tools/tool-use/parallel-tool-use")
_TOOL_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Oslo"]},
        "days": {"type": "integer", "enum": [3, 7]},
        "units": {"type": ["string", "null"], "enum": ["metric", None]},
    },
    "required": ["city", "days", "units"],
    "additionalProperties": False,
}
_NOTE: Final = {"type": "custom", "custom": {"name": "write_note", "description": "Write a note."}}
_LATE: Final = [*ASKED, assistant(call("call_1")), output("call_1"), user("And what time is it there? Use a tool.")]


def _only(*names: str) -> Judge:
    """Judge whether there is a call, and only calls of these tools."""

    def judge(answer: Answer) -> Verdict:
        if not answer.calls:
            if answer.finish == "length":
                return Verdict("not shown", "a call", "the limit was reached before one")
            return does_not("a call", answer.text or "neither call nor text")
        odd = next((made.name for made in answer.calls if made.name not in names), None)
        return HOLDS if odd is None else does_not(f"only calls of {', '.join(names)}", odd)

    return judge


def _judge_offered(answer: Answer) -> Verdict:
    return _only("get_weather", "get_time")(answer) if answer.calls else HOLDS


def _none(answer: Answer) -> Verdict:
    if answer.calls:
        return does_not("no call", answer.calls[0].name)
    if not answer.text:
        return Verdict("not shown" if answer.finish == "length" else "does not", "a text", "none")
    return HOLDS


def _one(answer: Answer) -> Verdict:
    return HOLDS if len(answer.calls) == 1 else does_not("one call", f"{len(answer.calls)} calls")


def _strict(answer: Answer) -> Verdict:
    faults = validator_of(_TOOL_SCHEMA).faults(answer.calls[0].value)
    return HOLDS if not faults else does_not("arguments that fit the schema", f"{faults[0].path}: {faults[0].message}")


def _custom(answer: Answer) -> Verdict:
    made = answer.calls[0]
    return HOLDS if (made.kind, made.name) == ("custom", "write_note") else does_not("a custom call", f"{made}")


def _choice(form: str, title: str, body: Body, judge: Judge, *, optional: bool = False) -> Check:
    where = _OPENAI_CHOICE if optional else _CHOICE
    return Check(name=f"tool_choice.{form}", title=title, sources=where, asks=(body,), judge=judge, optional=optional)


def _allow_time(mode: str) -> Body:
    allowed = {"mode": mode, "tools": [choice_of("get_time")]}
    return {**REQUIRED, "tool_choice": {"type": "allowed_tools", "allowed_tools": allowed}}


CHECKS: Final = (
    _choice("auto", "auto: a text, or calls of offered tools", {**REQUIRED, "tool_choice": "auto"}, _judge_offered),
    _choice("none", "none: no call, though tools are offered", {**REQUIRED, "tool_choice": "none"}, _none),
    _choice("required", "required (any): at least one call", REQUIRED, _only("get_weather", "get_time")),
    _choice(
        "named",
        "A named tool is called, even if another would suit better",
        {**REQUIRED, "tool_choice": choice_of("get_time")},
        _only("get_time"),
    ),
    _choice(
        "allowed", "allowed_tools: calls of these tools only", _allow_time("required"), _only("get_time"), optional=True
    ),
    Check(
        name="parallel.off",
        title="At most one call if parallel calls are off",
        sources=_PARALLEL,
        asks=({**TWO, "parallel_tool_calls": False},),
        judge=_one,
        wants="call",
    ),
    Check(
        name="strict.schema",
        title="A strict tool is called with arguments that fit its schema",
        sources=STRICT,
        asks=(
            {
                "messages": [user("The weather in Bergen for 5 days, in miles, please. Use the tool.")],
                "tools": [tool("get_forecast", strict=True, schema=_TOOL_SCHEMA)],
                "tool_choice": choice_of("get_forecast"),
            },
        ),
        judge=_strict,
        optional=True,
        wants="call",
    ),
    Check(
        name="tools.late",
        title="A tool that only a later request offers can be called",
        sources=CALLING,
        asks=({"messages": _LATE, "tools": BOTH, "tool_choice": choice_of("get_time")},),
        judge=_only("get_time"),
        wants="call",
    ),
    Check(
        name="tools.gone",
        title="A tool of an earlier request, not offered now, is not called",
        sources=CALLING,
        asks=({"messages": _LATE, "tools": [TIME], "tool_choice": "required"},),
        judge=_only("get_time"),
        wants="call",
    ),
    Check(
        name="tools.no_parameters",
        title="A tool without parameters is called with an empty object",
        sources=CALLING,
        asks=(
            {
                "messages": [user("Roll the dice. Use the tool.")],
                "tools": [tool("roll_dice", "Roll the dice.", schema={"type": "object", "properties": {}})],
                "tool_choice": choice_of("roll_dice"),
            },
        ),
        judge=lambda answer: (
            HOLDS if answer.calls[0].value == {} else does_not("the arguments {}", answer.calls[0].arguments)
        ),
        wants="call",
    ),
    Check(
        name="tools.custom",
        title="A custom tool is called with a text",
        sources=guides("function-calling#custom-tools"),
        asks=(
            {
                "messages": [user("Write a note that says: buy milk")],
                "tools": [_NOTE],
                "tool_choice": {"type": "custom", "custom": {"name": "write_note"}},
            },
        ),
        judge=_custom,
        optional=True,
        wants="call",
    ),
)
