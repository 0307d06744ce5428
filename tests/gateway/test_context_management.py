"""`context_management` of the Responses API: a conversation over the threshold is compacted before it goes on."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.http_client import request
from tests.support.responses_client import FUNCTIONS, RESPONSES, kinds, respond, text_of
from tests.support.servers import USAGE, Answer, ModelServer, calling, said

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
LONG = "x" * 4_000  # a thousand tokens
ALWAYS = [{"type": "compaction", "compact_threshold": 100}]
SUMMARY = "They talked about x."
TOLD = f"Summary of the conversation so far, which is not shown any more:\n\n{SUMMARY}"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def shown(model: ModelServer, number: int = -1) -> list[Any]:
    return list(model.asked[number].body["messages"])


def ask(gateway: str, given: Any, *, stream: bool = False, **fields: Any) -> Any:
    return respond(gateway, stream=stream, **{"model": "native", "input": given, **fields})


def counted(text: str, prompt_tokens: int) -> Answer:
    """An answer whose server has counted so many tokens."""
    before, after = (f'"prompt_tokens": {number}'.encode() for number in (USAGE["prompt_tokens"], prompt_tokens))
    return Answer(tuple(step.replace(before, after) for step in said(text).steps if isinstance(step, bytes)))


def over(tokens: int) -> dict[str, Any]:
    return {"context_management": [{"type": "compaction", "compact_threshold": tokens}]}


@both
def test_a_conversation_over_the_threshold_is_compacted_before_it_goes_on(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    model.plays(said(SUMMARY), said("A"))
    items = [{"role": "developer", "content": "Be kind."}, user(LONG), assistant("a"), user("q")]
    response = ask(gateway, items, stream=stream, context_management=ALWAYS, instructions="Be brief.")
    assert kinds(response["output"]) == ["compaction", "message"]
    assert text_of({"output": response["output"][1:]}) == "A"
    assert shown(model, 0)[1]["content"] == LONG  # the summary is made of all of it
    system, *rest = shown(model)
    assert ("Be brief." in system["content"], "Be kind." in system["content"]) == (True, True)
    assert rest == [user(TOLD), user("q")]
    assert response["usage"]["total_tokens"] == 2 * USAGE["total_tokens"]


@both
def test_below_the_threshold_nothing_is_compacted(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(said("A"))
    high = [{"type": "compaction", "compact_threshold": 2_000}]
    response = ask(gateway, [user(LONG), assistant("a"), user("q")], stream=stream, context_management=high)
    assert kinds(response["output"]) == ["message"]
    assert len(shown(model)) == 3


def test_what_has_nothing_that_may_go_is_not_compacted(gateway: str, model: ModelServer) -> None:
    model.plays(said("A"))
    assert kinds(ask(gateway, LONG, context_management=ALWAYS)["output"]) == ["message"]


def test_without_a_threshold_it_is_a_hundred_thousand_tokens(gateway: str, model: ModelServer) -> None:
    model.plays(said("A"), said(SUMMARY), said("B"))
    items = [user("x" * 390_000), assistant("a"), user("q")]
    given = [{"type": "compaction"}]
    assert kinds(ask(gateway, items, context_management=given)["output"]) == ["message"]
    items[0] = user("x" * 410_000)
    assert kinds(ask(gateway, items, context_management=given)["output"]) == ["compaction", "message"]


@pytest.mark.parametrize("by", ["previous_response_id", "input", "conversation"])
def test_what_continues_goes_on_from_the_summary(gateway: str, model: ModelServer, by: str) -> None:
    model.plays(said(SUMMARY), said("A"), said("B"))
    items = [user(LONG), assistant("a"), user("q")]
    more: dict[str, Any] = {}
    if by == "conversation":
        more["conversation"] = request(f"{gateway}/v1/conversations", {}).json["id"]
    first = ask(gateway, items, context_management=ALWAYS, **more)
    if by == "input":
        ask(gateway, [*items, *first["output"], user("r")], store=False)
    elif by == "conversation":
        ask(gateway, "r", **more)
    else:
        ask(gateway, "r", previous_response_id=first["id"])
    assert shown(model) == [user(TOLD), user("q"), assistant("A"), user("r")]


def test_a_client_may_leave_out_what_stands_before_the_summary(gateway: str, model: ModelServer) -> None:
    model.plays(said(SUMMARY), said("A"), said("B"))
    first = ask(gateway, [user(LONG), assistant("a"), user("q")], context_management=ALWAYS)
    ask(gateway, [*first["output"], user("r")])
    assert shown(model) == [user(TOLD), assistant("A"), user("r")]


def test_outputs_that_wait_for_an_answer_stay_with_their_calls(gateway: str, model: ModelServer) -> None:
    model.plays(calling("get_weather", '{"city": "Paris"}'), said(SUMMARY), said("A"), said("B"))
    first = ask(gateway, [user(LONG), assistant("a"), user("q")], tools=FUNCTIONS)
    id_ = first["output"][-1]["call_id"]
    result = {"type": "function_call_output", "call_id": id_, "output": "18"}
    second = ask(gateway, [result], previous_response_id=first["id"], tools=FUNCTIONS, **over(10))
    assert kinds(second["output"]) == ["compaction", "message"]
    summary, called, answered = shown(model)
    assert (summary, called["tool_calls"][0]["id"], answered["content"]) == (user(TOLD), id_, "18")
    ask(gateway, "r", previous_response_id=second["id"], tools=FUNCTIONS)
    assert shown(model)[:3] == [summary, called, answered]


def test_a_late_output_of_a_call_that_was_summed_up_is_told(gateway: str, model: ModelServer) -> None:
    model.plays(said(SUMMARY), said("A"), said("B"))
    made = {"type": "function_call", "call_id": "c", "name": "job", "arguments": "{}", "async": True}
    first = ask(gateway, [user(LONG), made, user("q")], context_management=ALWAYS)
    late = {"type": "function_call_output", "call_id": "c", "output": "42"}
    ask(gateway, [late], previous_response_id=first["id"])
    assert shown(model)[-1] == user("The output of a call that is not shown:\n42")


def test_the_count_of_the_server_goes_before_the_estimate(gateway: str, model: ModelServer) -> None:
    model.plays(counted("a", 5_000), said(SUMMARY), said("A"))
    first = ask(gateway, "short")
    second = ask(
        gateway,
        "q",
        previous_response_id=first["id"],
        **over(4_000),
    )
    assert kinds(second["output"]) == ["compaction", "message"]


def test_what_was_compacted_is_not_counted_with_its_compaction(gateway: str, model: ModelServer) -> None:
    model.plays(said(SUMMARY), counted("A", 5_000), said("B"))
    first = ask(gateway, [user(LONG), assistant("a"), user("q")], **over(900))
    second = ask(gateway, "r", previous_response_id=first["id"], **over(900))
    assert [kinds(one["output"]) for one in (first, second)] == [["compaction", "message"], ["message"]]


@both
def test_a_summary_that_cannot_be_made_is_the_failure_of_the_response(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    model.plays(said(""))
    body = {"model": "native", "input": [user(LONG), assistant("a"), user("q")], "context_management": ALWAYS}
    reply = request(gateway + RESPONSES, {**body, "stream": stream})
    assert "The model wrote no summary." in reply.text
    assert (reply.status == 200) is stream


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ([{"type": "clearing"}], "context_management[0].type"),
        ([{"type": "compaction"}, {}], "context_management[1].type"),
        ([{"type": "compaction", "compact_threshold": 0}], "context_management[0].compact_threshold"),
        ({"type": "compaction"}, "context_management"),
        ([{"type": "compaction"}] * 257, "context_management"),
    ],
)
def test_a_wish_that_cannot_be_read_is_refused(gateway: str, given: Any, param: str) -> None:
    reply = request(gateway + RESPONSES, {"model": "native", "input": "Hi", "context_management": given})
    assert (reply.status, reply.error["param"]) == (400, param)


def test_over_a_websocket_the_connection_goes_on_from_the_summary(gateway: str, model: ModelServer) -> None:
    pytest.importorskip("websockets", reason="websockets is not installed")
    from websockets.asyncio.client import connect

    model.plays(said(SUMMARY), said("A"), said("B"))

    async def turn(socket: Any, **body: Any) -> Any:
        await socket.send(json.dumps({"type": "response.create", "model": "native", "store": False, **body}))
        event: Any = {"type": None}
        while event["type"] != "response.completed":
            event = json.loads(await socket.recv())
            assert event["type"] != "error", event
        return event["response"]

    async def talk() -> Any:
        async with connect(gateway.replace("http", "ws") + RESPONSES) as socket:
            items = [user(LONG), assistant("a"), user("q")]
            first = await turn(socket, input=items, context_management=ALWAYS)
            await turn(socket, input=[user("r")], previous_response_id=first["id"])
            return first

    assert kinds(asyncio.run(talk())["output"]) == ["compaction", "message"]
    assert shown(model) == [user(TOLD), user("q"), assistant("A"), user("r")]


@pytest.mark.processes  # it asks the system for its name
def test_openais_library_reads_a_compaction_that_is_streamed(gateway: str, model: ModelServer) -> None:
    openai = pytest.importorskip("openai", reason="the SDK of OpenAI is not installed")
    model.plays(said(SUMMARY), said("A"))
    client = openai.OpenAI(base_url=f"{gateway}/v1", api_key="any", max_retries=0)
    items = [user(LONG), assistant("a"), user("q")]
    with client, client.responses.stream(model="native", input=items, context_management=ALWAYS) as stream:
        done = [event.item.type for event in stream if event.type == "response.output_item.done"]
        assert done == ["compaction", "message"]
        assert stream.get_final_response().output_text == "A"
