"""Conversations in odd shapes, which clients send, and structured answers."""

from collections.abc import Mapping
from typing import Any, Final

from callwright.conform.answer import Answer, Body
from callwright.conform.check import HELLO, HOLDS, Check, Verdict, does_not, refusal
from callwright.conform.checks.asks import ASKED, BOTH, CALLING, assistant, call, guides, output, user
from callwright.eval.wires import WireName
from callwright.schema.validate import validator_of
from callwright.tolerant_json.codec import NotJsonError, decode

# One red pixel.
_PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
_TOGETHER: Final = assistant(call("call_1"), call("call_2", "Bergen"))
_PERSON: Final = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "enum": [41, 42]}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def _judge_answer(answer: Answer) -> Verdict:
    if answer.text or answer.calls or answer.reasoning or answer.finish == "length":
        return HOLDS
    if answer.finish:  # a model can choose to say nothing
        return Verdict("not shown", "a text or a call", "an empty answer")
    return does_not("a text or a call", "an empty answer")


def _judge_answer_or_refusal(answer: Answer) -> Verdict:
    if answer.status == 400:
        return HOLDS if isinstance(answer.error, dict) else does_not("an error object", answer.body)
    return (
        _judge_answer(answer)
        if answer.status == 200 and answer.error is None
        else does_not("an answer, or HTTP 400", refusal(answer))
    )


def _judge_schema(answer: Answer) -> Verdict:
    if answer.finish == "length":
        return Verdict("not shown", "a whole text", "the limit was reached")
    try:
        value = decode(answer.text)
    except NotJsonError:
        return does_not("JSON that fits the schema", answer.text)
    faults = validator_of(_PERSON).faults(value)
    return HOLDS if not faults else does_not("JSON that fits the schema", f"{faults[0].path}: {faults[0].message}")


def _with_image(wire: WireName, sent: Body) -> Body:
    """The request about a picture."""
    url, text = f"data:image/png;base64,{_PIXEL}", "What is in the picture?"
    parts: dict[WireName, list[Any]] = {
        "chat": [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}],
        "responses": [{"type": "input_text", "text": text}, {"type": "input_image", "image_url": url}],
        "messages": [
            {"type": "text", "text": text},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PIXEL}},
        ],
    }
    field = "input" if wire == "responses" else "messages"
    return {**sent, field: [{"role": "user", "content": parts[wire]}]}


_MADE: Final = assistant(call("call_1"))
_GIVEN: Final = output("call_1")
_FOREIGN: Final = "chatcmpl-tool-0af3"
_AGAIN: Final = [user("And in Bergen?"), assistant(call("call_1", "Bergen")), _GIVEN]
_SHAPES: Final[Mapping[str, tuple[str, list[Body]]]] = {
    "result": ("The result of a call is answered", [_MADE, _GIVEN]),
    "out_of_order": ("Results of several calls, in another order", [_TOGETHER, output("call_2"), _GIVEN]),
    "empty_content": ("An empty text with calls", [assistant(call("call_1"), content=""), _GIVEN]),
    "text_and_call": ("A text with calls", [assistant(call("call_1"), content="I will look."), _GIVEN]),
    "empty_result": ("An empty result", [_MADE, output("call_1", "")]),
    "foreign_id": ("An id of another server", [assistant(call(_FOREIGN)), output(_FOREIGN)]),
    "two_users": ("Two messages of the user, one after the other", [user("In one sentence, please.")]),
    "no_tools": ("Calls and results without tools in the request", [_MADE, _GIVEN, user("Thank you. Say hello.")]),
}
# Not described, or refused by the vendor; no reason to fail.
_LENIENT: Final[Mapping[str, tuple[str, list[Body]]]] = {
    "repeated_id": ("The same id in two turns: an answer, or a 400", [_MADE, _GIVEN, *_AGAIN]),
    "no_call": ("A result without its call: an answer, or a 400", [output("call_9")]),
    "no_result": ("A call without a result: an answer, or a 400", [_MADE, user("Never mind. Say hello.")]),
}


# The server must answer this, or its 400 to the shapes above means nothing.
_RIGHT: Final[Body] = {"messages": [*ASKED, _MADE, _GIVEN], "tools": BOTH}


def _history(name: str, title: str, messages: list[Body], *, lenient: bool = False) -> Check:
    body: Body = {"messages": [*ASKED, *messages], **({} if name == "no_tools" else {"tools": BOTH})}
    return Check(
        name=f"history.{name}",
        title=title,
        sources=CALLING,
        asks=(body,),
        given=(HELLO, _RIGHT) if lenient else (HELLO,),
        judge=_judge_answer_or_refusal if lenient else _judge_answer,
        wants="error" if lenient else "answer",
    )


CHECKS: Final = (
    *(_history(name, *shape) for name, shape in _SHAPES.items()),
    *(_history(name, *shape, lenient=True) for name, shape in _LENIENT.items()),
    Check(
        name="history.image",
        title="An image",
        sources=guides("images-vision", "build-with-claude/vision"),
        asks=({"messages": ASKED},),
        change=_with_image,
        judge=_judge_answer,
        optional=True,
        variants=("whole",),
    ),
    Check(
        name="structured.schema",
        title="A text that fits the requested JSON schema",
        sources=guides("structured-outputs", "build-with-claude/structured-outputs"),
        asks=(
            {
                "messages": [user("Write a short poem about the sea.")],
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "person", "strict": True, "schema": _PERSON},
                },
            },
        ),
        judge=_judge_schema,
        optional=True,
    ),
)
