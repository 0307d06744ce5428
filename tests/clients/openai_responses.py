"""Conversations over the Responses API with the official openai package, of any major version.

    python openai_responses.py BASE_URL turns MODEL [MODEL ...]
    python openai_responses.py BASE_URL rest MODEL [MODEL ...]

`turns`: a call, its result, the answer; asked for whole, streamed, and by the package's stream helper, with the items
sent back and with `previous_response_id`. `rest`: everything else that the package has methods for; it wants the
simulated model. Exits with 1 and says what differs when anything does.
"""

import functools
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pydantic

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "strict": True,
    }
]
LOOKUP: dict[str, Any] = {"type": "custom", "name": "find_place", "description": "Finds a place by its name."}
GRAMMAR = "start: NAME\nNAME: /[A-Z][a-z]+/"
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
ENDS = ("response.completed", "response.incomplete", "response.failed")
QUESTION = "What is the weather in Paris?"
RESULT = "18 °C, sunny"
Ask = Callable[..., Any]


class Sight(pydantic.BaseModel):
    """Something to see."""

    place: str
    height: int


# --- three ways to ask ---


def whole(client: Any, **request: Any) -> Any:
    """The answer at once."""
    return client.responses.create(**request)


def streamed(client: Any, **request: Any) -> Any:
    """The answer at the end of a stream, whose events say the same."""
    return read_stream(client.responses.create(**request, stream=True))


def read_stream(stream: Any) -> Any:
    """The answer at the end of a stream, which must have been put together from the events before."""
    texts: dict[str, str] = {}
    done: list[Any] = []
    kinds: list[str] = []
    answer: Any = None
    for number, event in enumerate(stream):
        expect("the sequence number", event.sequence_number, number)
        expect("the end of the stream", answer, None)
        kinds.append(event.type)
        if event.type.endswith(".delta"):
            texts[event.item_id] = texts.get(event.item_id, "") + event.delta
        elif event.type == "response.output_item.done":
            expect("the number of the item", event.output_index, len(done))
            done.append(event.item)
        elif event.type in ENDS:
            answer = event.response
    expect("the first events", kinds[:2], ["response.created", "response.in_progress"])
    expect("the items of the events", [item.to_dict() for item in done], [item.to_dict() for item in answer.output])
    for item in answer.output:
        if item.type in CALLS:
            expect("the deltas of a call", texts.get(item.id, ""), getattr(item, CALLS[item.type]))
        elif item.type == "message":
            expect("the deltas of a text", texts[item.id], item.content[0].text)
    return answer


def helped(client: Any, **request: Any) -> Any:
    """The answer that the package puts together from a stream."""
    with client.responses.stream(**request) as stream:
        kinds = {event.type for event in stream}
        answer = stream.get_final_response()
    called = [item for item in answer.output if item.type == "function_call"]
    for call in called:
        expect("the parsed arguments", call.parsed_arguments, json.loads(call.arguments))
    expect("deltas of the call", "response.function_call_arguments.delta" in kinds, bool(called))
    return answer


WAYS: tuple[Ask, ...] = (whole, streamed, helped)


# --- a call, its result, the answer ---


def two_turns(client: Any, model: str, ask: Ask, *, refers: bool) -> None:
    """Ask, run the call, tell its result, and check what comes. `refers`: the second turn names the first."""
    question = {"role": "user", "content": QUESTION}
    first = ask(client, model=model, input=[question], tools=TOOLS)
    call = the_call(first, "function_call")
    expect("the tool", call.name, "get_weather")
    expect("the arguments", json.loads(call.arguments), {"city": "Paris"})
    result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
    if refers:
        last = ask(client, model=model, input=[result], tools=TOOLS, previous_response_id=first.id)
        expect("what came before", last.previous_response_id, first.id)
    else:
        items = [item.to_dict() for item in first.output]
        last = ask(client, model=model, input=[question, *items, result], tools=TOOLS)
    expect("the result in the answer", "18 °C" in last.output_text, True)
    expect("calls in the second turn", [item for item in last.output if item.type == "function_call"], [])
    for answer in (first, last):
        expect("the status", answer.status, "completed")
        expect("the token counts", answer.usage.total_tokens > answer.usage.input_tokens > 0, True)


def the_call(answer: Any, kind: str) -> Any:
    """The only call of an answer."""
    calls = [item for item in answer.output if item.type in CALLS]
    expect("the kinds of the calls", [call.type for call in calls], [kind])
    return calls[0]


# --- the rest ---


def calls_side_by_side(client: Any, model: str, ask: Ask) -> None:
    """Two calls in one answer, whose results come in the other order; then one only, where one is asked for."""
    question = {"role": "user", "content": "What is the weather in Paris and in Rome?"}
    first = ask(client, model=model, input=[question], tools=TOOLS)
    calls = [item for item in first.output if item.type == "function_call"]
    expect("the number of calls", len(calls), 1 if model == "raw-harmony" else 2)  # gpt-oss stops behind each call
    expect("their ids", len({call.call_id for call in calls}), len(calls))
    told = [
        {
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": f"{json.loads(call.arguments)['city']}: 9 °C",
        }
        for call in reversed(calls)
    ]
    last = ask(client, model=model, input=told, previous_response_id=first.id)
    expect("all results in the answer", last.output_text.count("9 °C"), len(calls))
    only = ask(client, model=model, input=[question], tools=TOOLS, parallel_tool_calls=False)
    the_call(only, "function_call")


def choices(client: Any, model: str, ask: Ask) -> None:
    """None, one by name, and one of an allowed set."""
    tools = [*TOOLS, {**TOOLS[0], "name": "get_forecast", "description": "The forecast for a city."}]
    ask_for = functools.partial(ask, client, model=model, input=QUESTION, tools=tools)
    expect("a call against the choice", [i for i in ask_for(tool_choice="none").output if i.type in CALLS], [])
    named = ask_for(tool_choice={"type": "function", "name": "get_forecast"})
    expect("the named tool", the_call(named, "function_call").name, "get_forecast")
    some = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_forecast"}]}
    expect("an allowed tool", the_call(ask_for(tool_choice=some), "function_call").name, "get_forecast")


def custom_tools(client: Any, model: str, ask: Ask) -> None:
    """Calls with free text, and with a text that a grammar holds; sent back as items and by reference."""
    grammar = {"type": "grammar", "syntax": "lark", "definition": GRAMMAR}
    for format_ in (None, {"type": "text"}, grammar, {**grammar, "syntax": "regex", "definition": "[A-Z][a-z]+"}):
        tools = [{**LOOKUP, **({"format": format_} if format_ else {})}]
        question = {"role": "user", "content": "Please find the place Paris."}
        first = ask(client, model=model, input=[question], tools=tools)
        call = the_call(first, "custom_tool_call")
        expect("the tool", call.name, "find_place")
        expect("the input", re.fullmatch("[A-Z][a-z]+", call.input) is not None, True)
        result = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "48.9 N"}
        items = [item.to_dict() for item in first.output]
        for request in (
            {"input": [question, *items, result]},
            {"input": [result], "previous_response_id": first.id},
        ):
            last = ask(client, model=model, tools=tools, **request)
            expect("the result in the answer", "48.9 N" in last.output_text, True)


def a_bad_grammar(client: Any, model: str) -> None:
    """It is refused, and the error says where it is wrong."""
    format_ = {"type": "grammar", "syntax": "lark", "definition": "start: ("}
    refused = error_of(
        openai.BadRequestError, whole, client, model=model, input="x", tools=[{**LOOKUP, "format": format_}]
    )
    expect("the field", refused.param, "tools[0].format.definition")


def structured_output(client: Any, model: str) -> None:
    """An answer, arguments, and streamed text that the package parses into a class."""
    question = 'How high is the "Eiffel Tower", which has 330 m?'
    answer = client.responses.parse(model=model, input=question, text_format=Sight)
    expect("the parsed answer", answer.output_parsed, Sight(place="Eiffel Tower", height=330))
    tool = openai.pydantic_function_tool(Sight, name="store_sight")
    with client.responses.stream(model=model, input=question, text_format=Sight) as stream:
        texts = [event for event in stream if event.type == "response.output_text.done"]
        parsed = stream.get_final_response().output_parsed
    expect("the parsed text of the stream", [event.parsed for event in texts], [parsed])
    answer = client.responses.parse(
        model=model, input=f"Store the sight. {question}", tools=[tool], tool_choice="required"
    )
    (call,) = (item for item in answer.output if item.type == "function_call")
    expect("the parsed call", call.parsed_arguments, Sight(place="Eiffel Tower", height=330))


def reasoning(client: Any, model: str, ask: Ask) -> None:
    """As text, as a summary, and packed, so that it can come back without being stored."""
    question = {"role": "user", "content": "Good morning!"}
    thought = "No tool is needed here."
    ask_for = functools.partial(ask, client, model=model, tools=TOOLS)
    plain = ask_for(input=[question])
    expect("the reasoning", plain.output[0].content[0].text, thought)
    short = ask_for(input=[question], reasoning={"summary": "auto"})
    expect("the summary", short.output[0].summary[0].text, thought)
    packed = ask_for(input=[question], include=["reasoning.encrypted_content"], store=False)
    item = packed.output[0].to_dict()
    expect("the packed reasoning", bool(item["encrypted_content"]), True)
    for part in ("content", "summary"):
        item[part] = []
    again = ask_for(input=[question, item, packed.output[1].to_dict(), {**question, "content": "Yes."}])
    expect("the answer behind it", again.output_text, "You said: Yes.")


def what_is_kept(client: Any, model: str) -> None:
    """Responses are read, listed with their input, continued twice over, and forgotten."""
    first = client.responses.create(model=model, input="My name is Ada.", metadata={"case": "kept"})
    read = client.responses.retrieve(first.id)
    expect("the response that was kept", read.to_dict(), first.to_dict())
    forks = [client.responses.create(model=model, input=text, previous_response_id=first.id) for text in ("One", "Two")]
    expect("two ways on", [fork.output_text for fork in forks], ["You said: One", "You said: Two"])
    items = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "c"}]},
    ]
    long = client.responses.create(model=model, input=items)
    listed = list(client.responses.input_items.list(long.id, order="asc", limit=2))
    expect("the texts of the input", [item.content[0].text for item in listed], ["a", "b", "c"])
    expect("the kinds", {item.type for item in listed}, {"message"})
    newest = client.responses.input_items.list(long.id, limit=1)
    expect("the newest first", (newest.data[0].content[0].text, newest.has_more), ("c", True))
    client.responses.delete(first.id)
    error_of(openai.NotFoundError, client.responses.retrieve, first.id)
    lost = error_of(
        openai.BadRequestError, client.responses.create, model=model, input="x", previous_response_id=first.id
    )
    expect("why it cannot go on", lost.code, "previous_response_not_found")
    on = client.responses.create(model=model, input="Three", previous_response_id=forks[0].id)
    expect("a fork outlives its root", on.output_text, "You said: Three")
    gone = client.responses.create(model=model, input="x", store=False)
    error_of(openai.NotFoundError, client.responses.retrieve, gone.id)


def conversations(client: Any, model: str) -> None:
    """Items are kept under an id, which responses read and extend."""
    conversation = client.conversations.create(
        items=[{"role": "user", "content": "Hello"}], metadata={"case": "conversation"}
    )
    first = client.responses.create(model=model, input=QUESTION, tools=TOOLS, conversation=conversation.id)
    expect("its conversation", first.conversation.id, conversation.id)
    call = the_call(first, "function_call")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
    last = client.responses.create(model=model, input=[result], conversation={"id": conversation.id}, tools=TOOLS)
    expect("the result in the answer", "18 °C" in last.output_text, True)
    listed = list(client.conversations.items.list(conversation.id, order="asc"))
    kinds = [item.type for item in listed if item.type != "reasoning"]
    expect("its items", kinds, ["message", "message", "function_call", "function_call_output", "message"])
    added = client.conversations.items.create(conversation.id, items=[{"role": "user", "content": "More"}])
    (more,) = added.data
    read = client.conversations.items.retrieve(more.id, conversation_id=conversation.id)
    expect("the item that was added", read.content[0].text, "More")
    client.conversations.items.delete(more.id, conversation_id=conversation.id)
    error_of(openai.NotFoundError, client.conversations.items.retrieve, more.id, conversation_id=conversation.id)
    updated = client.conversations.update(conversation.id, metadata={"case": "other"})
    expect("its metadata", updated.metadata, {"case": "other"})
    expect("what is read of it", client.conversations.retrieve(conversation.id).to_dict(), updated.to_dict())
    expect("it is forgotten", client.conversations.delete(conversation.id).deleted, True)
    error_of(openai.NotFoundError, client.conversations.retrieve, conversation.id)


def other_endpoints(client: Any, model: str) -> None:
    """Tokens are counted, a conversation is made short, an answer is made in the background."""
    counted = client.responses.input_tokens.count(model=model, input=QUESTION, tools=TOOLS)
    expect("tokens", counted.input_tokens > 0, True)
    short = client.responses.compact(model=model, input=[{"role": "user", "content": "Keep the word cobalt."}])
    expect("the compaction", short.output[-1].type, "compaction")
    items = [item.to_dict(warnings=False) for item in short.output]
    on = client.responses.create(model=model, input=[*items, {"role": "user", "content": "Go on."}])
    expect("the answer behind it", on.output_text, "You said: Go on.")
    answer = client.responses.create(model=model, input="In the background", background=True)
    expect("it waits", (answer.status, answer.output), ("queued", []))
    while answer.status in ("queued", "in_progress"):
        answer = client.responses.retrieve(answer.id)
    expect("it is made", (answer.status, answer.output_text), ("completed", "You said: In the background"))


def web_sockets(client: Any, model: str) -> None:
    """Two turns on one connection, of which nothing is stored; an error leaves it open."""
    if importlib.util.find_spec("websockets") is None:
        return
    with client.responses.connect() as connection:

        def ask(**request: Any) -> Any:
            connection.response.create(model=model, store=False, tools=TOOLS, **request)
            return read_stream(one_turn(connection))

        first = ask(input=QUESTION)
        call = the_call(first, "function_call")
        result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
        last = ask(input=[result], previous_response_id=first.id)
        expect("the result in the answer", "18 °C" in last.output_text, True)
        connection.response.create(model=model, input="x", previous_response_id="resp_none")
        error = connection.recv().to_dict()  # its class differs between the versions of the package
        expect("the error", (error["type"], error["error"]["code"]), ("error", "previous_response_not_found"))
        expect("the next turn", the_call(ask(input=QUESTION), "function_call").name, "get_weather")


def one_turn(connection: Any) -> Iterator[Any]:
    """The events of a connection up to the end of a turn."""
    kind = ""
    while kind not in ENDS:
        event = connection.recv()
        kind = event.type
        yield event


def custom_tools_in_chat(client: Any, model: str) -> None:
    """A custom tool of the Chat API, whole and streamed."""
    tool: dict[str, Any] = {"type": "custom", "custom": {key: value for key, value in LOOKUP.items() if key != "type"}}
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": GRAMMAR}}
    held = {"type": "custom", "custom": {**tool["custom"], "format": grammar}}
    question = {"role": "user", "content": "Please find the place Paris."}
    for given in (tool, held):
        ask = functools.partial(client.chat.completions.create, model=model, tools=[given])
        (choice,) = ask(messages=[question]).choices
        message = choice.message.to_dict()
        expect("the finish reason", choice.finish_reason, "tool_calls")
        for call in (choice.message.tool_calls[0].to_dict(), streamed_call(ask(messages=[question], stream=True))):
            expect("the kind of the call", call["type"], "custom")
            expect("the tool", call["custom"]["name"], "find_place")
            expect("the input", re.fullmatch("[A-Z][a-z]+", call["custom"]["input"]) is not None, True)
            result = {"role": "tool", "tool_call_id": call["id"], "content": "48.9 N"}
            (last,) = ask(messages=[question, {**message, "tool_calls": [call]}, result]).choices
            expect("the result in the answer", "48.9 N" in last.message.content, True)


def streamed_call(stream: Any) -> dict[str, Any]:
    """The only call of a stream of chat chunks; the package's types know functions only, the rest it hands on."""
    call: dict[str, Any] = {}
    for chunk in stream:
        for choice in chunk.choices:
            for piece in choice.delta.tool_calls or ():
                given = piece.to_dict()
                expect("the index", given.pop("index"), 0)
                if call:
                    call["custom"]["input"] += given["custom"]["input"]
                else:
                    call = given
    return call


# --- how it runs ---


def expect(what: str, got: object, wanted: object) -> None:
    """Raise when the two differ."""
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, expected {wanted!r}")


def error_of(kind: type[Any], call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """The error of a call that must fail with this kind."""
    try:
        got = call(*given, **named)
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, got {got!r}")


def cases(what: str) -> list[tuple[str, Callable[[Any, str], None]]]:
    """Everything to do with each model, by name."""
    if what == "turns":
        return [
            (
                f"two_turns, {ask.__name__}, {'by reference' if refers else 'sent back'}",
                functools.partial(two_turns, ask=ask, refers=refers),
            )
            for ask in WAYS
            for refers in (False, True)
        ]
    asked = [calls_side_by_side, choices, custom_tools, reasoning]
    found = [(f"{case.__name__}, {ask.__name__}", functools.partial(case, ask=ask)) for case in asked for ask in WAYS]
    others = [
        a_bad_grammar,
        structured_output,
        what_is_kept,
        conversations,
        other_endpoints,
        web_sockets,
        custom_tools_in_chat,
    ]
    return found + [(case.__name__, case) for case in others]


def main(base_url: str, what: str, *models: str) -> int:
    """Run all; the number of what went wrong."""
    failed = 0
    with openai.OpenAI(base_url=base_url, api_key="any", max_retries=0) as client:
        for model in models:
            for name, case in cases(what):
                try:
                    case(client, model)
                except Exception as error:
                    failed += 1
                    print(f"openai {openai.__version__}, {model}, {name}: {repr(error)[:1000]}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(1 if main(*sys.argv[1:]) else 0)
