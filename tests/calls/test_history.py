"""Histories that clients send back: what no template could show is mended, alike however long the history grows."""

from typing import Any

import pytest
from msgspec.structs import replace

from callwright.calls.history import HistoryRules, apply_history_rules, late_output, normalized
from callwright.conversation import Call, CallOutput, Item, Message, TextPart
from callwright.gateway.config.config import ModelConfig
from callwright.wire.chat.mend_history import mend_messages
from tests.conftest import Served, scripted_models
from tests.support.http_client import CHAT, request
from tests.support.outputs import QUESTION, TOOLS, played
from tests.support.servers import ModelServer

Json = dict[str, Any]


def call(id_: Any, arguments: Any = "{}", name: str = "get_weather") -> Json:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*made: Json, content: Any = None) -> Json:
    return {"role": "assistant", "content": content, "tool_calls": list(made)}


def output(id_: Any, content: Any = "18 °C") -> Json:
    return {"role": "tool", "tool_call_id": id_, "content": content}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def system(text: str, role: str = "system") -> Json:
    return {"role": role, "content": text}


HELLO = user("Hello")
NOT_RUN = "This call was not run."

# What clients send, and what it becomes.
HISTORIES: dict[str, tuple[list[Any], list[Any]]] = {
    "a good one": (
        [system("Be kind."), HELLO, calls(call("a")), output("a"), user("Thanks")],
        [system("Be kind."), HELLO, calls(call("a")), output("a"), user("Thanks")],
    ),
    "a call without an output": (
        [HELLO, calls(call("a")), user("Never mind")],
        [HELLO, calls(call("a")), output("a", NOT_RUN), user("Never mind")],
    ),
    "an output without a call": (
        [HELLO, output("b", "sunny")],
        [HELLO, user("The output of a call that is not shown (b):\nsunny")],
    ),
    "a late output": (
        [calls(call("a"), call("b")), output("b", "2"), HELLO, output("a", "1")],
        [calls(call("a"), call("b")), output("a", "1"), output("b", "2"), HELLO],
    ),
    "ids that were lost": (
        [calls(call(None), call("")), output(None, "1"), output("", "2")],
        [
            calls(call("call_mended_0_0"), call("call_mended_0_1")),
            output("call_mended_0_0", "1"),
            output("call_mended_0_1", "2"),
        ],
    ),
    "an id that is given twice": (
        [calls(call("a")), output("a", "1"), calls(call("a")), output("a", "2")],
        [calls(call("a")), output("a", "1"), calls(call("call_mended_2_0")), output("call_mended_2_0", "2")],
    ),
    "an id that is given twice at once": (
        [calls(call("a"), call("a")), output("a", "1"), output("a", "2")],
        [calls(call("a"), call("call_mended_0_1")), output("a", "1"), output("call_mended_0_1", "2")],
    ),
    "two outputs for one call": (
        [calls(call("a")), output("a", "1"), output("a", "2")],
        [calls(call("a")), output("a", "1"), user("The output of a call that is not shown (a):\n2")],
    ),
    "arguments that are no text": (
        [calls(call("a", {"city": "Oslo"}), call("b", None)), output("a"), output("b")],
        [calls(call("a", '{"city":"Oslo"}'), call("b", "{}")), output("a"), output("b")],
    ),
    "a name with a token in it": (
        [calls(call("a", name="get_weather<|channel|>commentary")), output("a")],
        [calls(call("a")), output("a")],
    ),
    "system messages": (
        [system("Be kind."), system("Be brief.", "developer"), HELLO, system("Now shout.")],
        [system("Be kind.\n\nBe brief."), HELLO, user("<system>\nNow shout.\n</system>")],
    ),
    "an assistant that says nothing": ([HELLO, {"role": "assistant", "content": ""}, HELLO], [HELLO, HELLO]),
    "what is no message": (
        [HELLO, None, {"role": "tool"}, 5],
        [HELLO, None, user("The output of a call that is not shown (without an id):\n"), 5],
    ),
}


@pytest.mark.parametrize(("given", "wanted"), HISTORIES.values(), ids=list(HISTORIES))
def test_a_history_is_mended(given: list[Any], wanted: list[Any]) -> None:
    assert mend_messages(given) == wanted
    assert mend_messages(wanted) == wanted, "what is mended stays"


@pytest.mark.parametrize(("given", "wanted"), HISTORIES.values(), ids=list(HISTORIES))
def test_what_comes_later_changes_nothing_before_it(given: list[Any], wanted: list[Any]) -> None:
    more = [*given, calls(call("z")), output("z"), user("And now?")]
    assert mend_messages(more)[: len(wanted)] == wanted


READABLE: dict[str, tuple[list[Item], list[Item]]] = {
    "an object": ([Call("f", '{"a":  1}', "a")], [Call("f", '{"a":  1}', "a")]),
    "nothing": ([Call("f", "", "a"), Call("f", "null", "b")], [Call("f", "{}", "a"), Call("f", "{}", "b")]),
    "almost JSON": ([Call("f", "{'a': 1,}", "a")], [Call("f", '{"a": 1}', "a")]),
    "half an object": (
        [Call("f", '{"a": "Os', "a"), CallOutput("a", (TextPart("5"),))],
        [
            Message("assistant", (TextPart('I called f with arguments that cannot be read: {"a": "Os'),)),
            Message("user", (TextPart("The output of that call: 5"),)),
        ],
    ),
    "a value that was never written": (
        [Call("f", '{"a": }', "a")],
        [Message("assistant", (TextPart('I called f with arguments that cannot be read: {"a": }'),))],
    ),
    "a list": (
        [Call("f", "[1]", "a")],
        [Message("assistant", (TextPart("I called f with arguments that cannot be read: [1]"),))],
    ),
    "an object that was encoded twice": ([Call("f", '"{\\"a\\": 1}"', "a")], [Call("f", '{"a": 1}', "a")]),
    "characters that were escaped": (
        [Call("f", r'{"na\u00efve": "\u00e9\ud83d\ude00 \u003ca> \\u00e9 \u000a\u0022 \u005c"}', "a")],
        [Call("f", r'{"naïve": "é😀 <a> \\u00e9 \u000a\u0022 \u005c"}', "a")],
    ),
    "a call without a name": (
        [Call(" ", '{"a": 1}', "a"), Call("f", "{}", "b"), CallOutput("b"), CallOutput("a", (TextPart("no tool"),))],
        [
            Message("assistant", (TextPart('I called a tool without its name, with the arguments {"a": 1}'),)),
            Call("f", "{}", "b"),
            CallOutput("b"),
            Message("user", (TextPart("The output of that call: no tool"),)),
        ],
    ),
    "text of a custom tool": ([Call("f", "print(1", "a", "custom")], [Call("f", "print(1", "a", "custom")]),
}


@pytest.mark.parametrize(("given", "wanted"), READABLE.values(), ids=list(READABLE))
def test_calls_are_readable(given: list[Item], wanted: list[Item]) -> None:
    assert normalized(given) == tuple(wanted)


@pytest.mark.parametrize("way", ["native", "prompt-json", "raw-hermes-vllm", "raw-harmony-vllm"])
@pytest.mark.parametrize("name", [name for name in HISTORIES if name != "what is no message"])
def test_a_gateway_that_mends_serves_them(serve: Served, model: ModelServer, way: str, name: str) -> None:
    gateway = serve(*scripted_models(model.url), history="mend")
    model.plays(played(way, "text"))
    messages = [QUESTION, *HISTORIES[name][0], QUESTION]
    reply = request(gateway + CHAT, {"model": way, "messages": messages, "tools": TOOLS})
    assert reply.status == 200, reply.text


def test_a_strict_gateway_refuses_them_as_openai_does(serve: Served, model: ModelServer) -> None:
    gateway = serve(*scripted_models(model.url))
    reply = request(gateway + CHAT, {"model": "native", "messages": HISTORIES["an output without a call"][0]})
    assert reply.status == 400
    assert "must be a response to a preceeding message" in reply.error["message"]


# --- what chat templates ask of the calls in a history ---

TWICE = [
    calls(call("call_x"), call("call_y", '{"city": "Bergen"}'), content="Looking."),
    output("call_y", "7 °C"),
    output("call_x"),
    user("And now?"),
    calls(call("call_z", name="get_time")),
    output("call_z", "noon"),
]
X, Y, Z = call("call_x"), call("call_y", '{"city": "Bergen"}'), call("call_z", name="get_time")


def ids(first: str, second: str, third: str) -> list[Json]:
    """The same history with results in the order of calls, under these ids."""
    x, y, z = ({**each, "id": id_} for each, id_ in ((X, first), (Y, second), (Z, third)))
    asked = calls(x, y, content="Looking.")
    return [asked, output(first), output(second, "7 °C"), user("And now?"), calls(z), output(third, "noon")]


# By the name of a model, whose template is known: calls one by one, or ids in its own form.
ONE_BY_ONE = [
    calls(X, content="Looking."),
    output("call_x"),
    calls(Y),
    output("call_y", "7 °C"),
    *ids("call_x", "call_y", "call_z")[3:],
]
SHAPED: dict[str, list[Json]] = {
    "acme/unheard-of-7b": ids("call_x", "call_y", "call_z"),
    "openai/gpt-oss-120b": ONE_BY_ONE,
    "meta-llama/Llama-3.3-70B-Instruct": ONE_BY_ONE,
    "mistralai/Mistral-Nemo-Instruct-2407": ids("n18dfd6yB", "79FnSYpvZ", "NCroSxf6e"),
    "moonshotai/Kimi-K2-Instruct": ids("functions.get_weather:0", "functions.get_weather:1", "functions.get_time:2"),
}


@pytest.mark.parametrize("name", SHAPED)
def test_a_server_that_renders_gets_a_history_that_its_template_shows(
    serve: Served, model: ModelServer, name: str
) -> None:
    gateway = serve(ModelConfig(name="any", model=name, upstream=model.url))
    model.plays(played("native", "text"))
    request(gateway + CHAT, {"model": "any", "messages": [QUESTION, *TWICE], "tools": TOOLS})
    assert model.asked[0].body["messages"] == [QUESTION, *SHAPED[name]]


def test_a_server_that_hands_arguments_to_its_template_gets_objects(serve: Served, model: ModelServer) -> None:
    gateway = serve(ModelConfig(name="any", upstream=model.url, arguments="object"))
    model.plays(played("native", "text"))
    request(gateway + CHAT, {"model": "any", "messages": [QUESTION, *TWICE], "tools": TOOLS})
    got = [call for message in model.asked[0].body["messages"] for call in message.get("tool_calls", ())]
    assert [call["function"]["arguments"] for call in got] == [{}, {"city": "Bergen"}, {}]


MADE, TOO = (Call(name, "{}", id=name) for name in "ab")
SAID, SAID_TOO = CallOutput("a"), CallOutput("b")
SAME, SAME_TOO = (Call(name, "{}", id="a") for name in "fg")
ONE, TWO, THREE = (CallOutput("a", (TextPart(text),)) for text in ("1", "2", "3"))
WORDS = Message("user", (TextPart("Wait."),))
LATER = Call("c", "{}", id="c")


@pytest.mark.parametrize(
    ("items", "wanted"),
    [
        ((MADE, TOO, SAID_TOO, SAID), (MADE, TOO, SAID, SAID_TOO)),
        ((MADE, TOO, SAID, LATER, SAID_TOO), (MADE, TOO, SAID, SAID_TOO, LATER)),
        ((MADE, WORDS, SAID), (MADE, SAID, WORDS)),
        ((MADE, TOO, SAID, SAID_TOO, WORDS), (MADE, TOO, SAID, SAID_TOO, WORDS)),
        (
            (MADE, TOO, SAID_TOO, LATER, WORDS, CallOutput("c"), SAID),
            (MADE, TOO, SAID, SAID_TOO, LATER, CallOutput("c"), WORDS),
        ),
        ((SAME, SAME_TOO, ONE, TWO), (SAME, replace(SAME_TOO, id="a_1"), ONE, replace(TWO, call_id="a_1"))),
        ((SAME, ONE, SAME_TOO, TWO), (SAME, ONE, SAME_TOO, TWO)),
        ((SAME, WORDS, SAME_TOO, TWO), (SAME, WORDS, SAME_TOO, TWO)),
        (
            (replace(SAME, id=""), replace(TOO, id=""), replace(ONE, call_id=""), replace(TWO, call_id="")),
            (replace(SAME, id=""), replace(TOO, id="call_1"), replace(ONE, call_id=""), replace(TWO, call_id="call_1")),
        ),
        ((MADE, TOO, SAID, replace(TWO, call_id="")), (MADE, TOO, SAID, replace(TWO, call_id="b"))),
        ((WORDS, ONE, MADE, SAID), (WORDS, late_output(ONE.parts), MADE, SAID)),
        (
            (SAME, ONE, TWO, WORDS, THREE),
            (SAME, ONE, late_output(TWO.parts, SAME), WORDS, late_output(THREE.parts, SAME)),
        ),
        ((MADE, TOO, SAID_TOO, WORDS), (MADE, TOO, SAID_TOO, WORDS)),
    ],
    ids=[
        *("the other way round", "a call between", "words between", "in order", "batches between"),
        *("one id at once", "one id again", "one id again, unanswered", "no ids", "a lost id"),
        *("no call", "two outputs", "nothing yet"),
    ],
)
def test_outputs_come_in_the_order_of_their_calls(items: tuple[Item, ...], wanted: tuple[Item, ...]) -> None:
    assert apply_history_rules(items, HistoryRules()) == wanted


def test_calls_that_are_in_order_are_shown_one_by_one_where_a_template_wants_that() -> None:
    items = (MADE, TOO, SAID, SAID_TOO)
    assert apply_history_rules(items, HistoryRules(single_calls=True)) == (MADE, SAID, TOO, SAID_TOO)
