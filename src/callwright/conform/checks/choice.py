"""Which tools are called: `tool_choice` in all forms, parallel calls, strict schemas, late tools, custom tools."""

from collections.abc import Mapping
from typing import Any, Final

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


def _no_arguments(answer: Answer) -> Verdict:
    made = answer.calls[0]
    return HOLDS if made.value == {} else does_not("the arguments {}", made.arguments)


def _custom(answer: Answer) -> Verdict:
    made = answer.calls[0]
    return HOLDS if (made.kind, made.name) == ("custom", "write_note") else does_not("a custom call", f"{made}")


def _check(name: str, title: str, judge: Judge, where: Mapping[WireName, str], ask: Body, **more: Any) -> Check:
    return Check(name=name, title=title, sources=where, asks=(ask,), judge=judge, **more)


def _choice(form: str, title: str, judge: Judge, choice: Any, where: Mapping[WireName, str] = _CHOICE) -> Check:
    body = {**REQUIRED, "tool_choice": choice}
    # What one vendor alone has may be refused.
    return _check(f"tool_choice.{form}", title, judge, where, body, optional="messages" not in where)


def _tools(name: str, title: str, judge: Judge, messages: list[Body], tools: list[Body], choice: Any) -> Check:
    ask = {"messages": messages, "tools": tools, "tool_choice": choice}
    return _check(f"tools.{name}", title, judge, CALLING, ask, wants="call")


_ONLY_TIME: Final = {"mode": "required", "tools": [choice_of("get_time")]}
_CUSTOM: Final = {"type": "custom", "custom": {"name": "write_note"}}
CHECKS: Final = (
    _choice("auto", "auto: a text, or calls of offered tools", _judge_offered, "auto"),
    _choice("none", "none: no call, though tools are offered", _none, "none"),
    _choice("required", "required (any): at least one call", _only("get_weather", "get_time"), "required"),
    _choice(
        *("named", "A named tool is called, even if another would suit better", _only("get_time")),
        choice_of("get_time"),
    ),
    _choice(
        *("allowed", "allowed_tools: calls of these tools only", _only("get_time")),
        {"type": "allowed_tools", "allowed_tools": _ONLY_TIME},
        _OPENAI_CHOICE,
    ),
    _check(
        *("parallel.off", "At most one call if parallel calls are off", _one, _PARALLEL),
        {**TWO, "parallel_tool_calls": False},
        wants="call",
    ),
    _check(
        *("strict.schema", "A strict tool is called with arguments that fit its schema", _strict, STRICT),
        {
            "messages": [user("The weather in Bergen for 5 days, in miles, please. Use the tool.")],
            "tools": [tool("get_forecast", strict=True, schema=_TOOL_SCHEMA)],
            "tool_choice": choice_of("get_forecast"),
        },
        optional=True,
        wants="call",
    ),
    _tools(
        *("late", "A tool that only a later request offers can be called", _only("get_time")),
        *(_LATE, BOTH, choice_of("get_time")),
    ),
    _tools(
        *("gone", "A tool of an earlier request, not offered now, is not called", _only("get_time")),
        *(_LATE, [TIME], "required"),
    ),
    _tools(
        *("no_parameters", "A tool without parameters is called with an empty object", _no_arguments),
        [user("Roll the dice. Use the tool.")],
        [tool("roll_dice", "Roll the dice.", schema={"type": "object", "properties": {}})],
        choice_of("roll_dice"),
    ),
    _check(
        *("tools.custom", "A custom tool is called with a text", _custom, guides("function-calling#custom-tools")),
        {"messages": [user("Write a note that says: buy milk")], "tools": [_NOTE], "tool_choice": _CUSTOM},
        optional=True,
        wants="call",
    ),
)
