"""Messages requests and answers at the edges: what models and clients do that they should not, and the order of things
that nobody expects. Whole and streamed, an answer is the same message.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pytest

from callwright.gateway.config.config import ModelConfig
from tests.conftest import Served
from tests.support.http_client import Reply, request
from tests.support.messages_client import COUNT, MESSAGES, TOOLS, message_of, named_events, user
from tests.support.servers import Answer, ModelServer, call_deltas, calling, chat, said, sse, whole

EAGER: Final = [{**tool, "eager_input_streaming": True} for tool in TOOLS]
THINKS: Final = {"thinking": {"type": "adaptive"}}
STOPS: Final = {"stop_sequences": ["</end>", "HALT"]}
TO_BERGEN: Final = ("get_weather", '{"city":"Ber', 'gen"}')


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def turn(role: str, *blocks: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def use(id_: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": given}


def result(id_: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **more}


def reference(*names: str) -> list[dict[str, Any]]:
    return [{"type": "tool_reference", "tool_name": name} for name in names]


def bare(block: Mapping[str, Any]) -> tuple[str, Any]:
    """A block without what is new in each answer."""
    kind = block["type"]
    return kind, (block["name"], block["input"]) if kind == "tool_use" else block[kind]


def asked(gateway: str, body: Mapping[str, Any]) -> Reply:
    return request(gateway + MESSAGES, {"model": "native", "max_tokens": 99, "messages": [user("Hi.")], **body})


# --- answers ---

ANSWERS: Final[Mapping[str, tuple[Mapping[str, Any], Callable[[], Answer], Sequence[Any], tuple[str, str | None]]]] = {
    "a stop sequence before a call": (
        {**STOPS, "tools": TOOLS},
        lambda: chat({"content": "So HAL"}, {"content": "T on"}, *call_deltas(*TO_BERGEN), finish="tool_calls"),
        [("text", "So ")],
        ("stop_sequence", "HALT"),
    ),
    "a stop sequence and the begin of a call in one piece": (
        {**STOPS, "tools": EAGER},
        lambda: in_one(chat({"content": "So HALT on"}, *call_deltas(*TO_BERGEN), finish="tool_calls")),
        [("text", "So ")],
        ("stop_sequence", "HALT"),
    ),
    "a stop sequence behind a call": (
        {**STOPS, "tools": TOOLS},
        lambda: chat(*call_deltas(*TO_BERGEN), {"content": "So HALT"}, finish="tool_calls"),
        [("tool_use", ("get_weather", {"city": "Bergen"})), ("text", "So ")],
        ("tool_use", None),
    ),
    "the begin of a stop sequence before reasoning": (
        {**STOPS, **THINKS},
        lambda: chat({"content": "1 </e"}, {"reasoning_content": "Hm."}, {"content": "nd> 2"}),
        [("text", "1 </e"), ("thinking", "Hm."), ("text", "nd> 2")],
        ("end_turn", None),
    ),
    "a stop sequence around reasoning that is not shown": (
        STOPS,
        lambda: chat({"content": "1 </e"}, {"reasoning_content": "Hm."}, {"content": "nd> 2"}),
        [("text", "1 ")],
        ("stop_sequence", "</end>"),
    ),
}


def in_one(answer: Answer) -> Answer:
    """The same answer in one write."""
    return Answer((b"".join(step for step in answer.steps if isinstance(step, bytes)),))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", ANSWERS)
def test_a_stop_sequence_ends_the_answer_wherever_it_stands(
    gateway: str, model: ModelServer, case: str, stream: bool
) -> None:
    body, answer, content, end = ANSWERS[case]
    model.plays(answer())
    message = message_of(gateway, {"model": "native", "messages": [user("Hi.")], **body}, stream=stream)
    assert list(map(bare, message["content"])) == content
    assert (message["stop_reason"], message["stop_sequence"]) == end


def test_a_whole_answer_does_not_wait_for_what_is_behind_a_stop_sequence(gateway: str, model: ModelServer) -> None:
    begun = said("<block>no</end>", finish=None, usage=False, done=False).steps
    model.plays(Answer((*begun, "silence")))
    message = message_of(gateway, {"model": "native", "messages": [user("Safe?")], **STOPS}, stream=False)
    assert list(map(bare, message["content"])) == [("text", "<block>no")]
    model.wait_until_left()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("tools", [TOOLS, EAGER], ids=["held", "live"])
@pytest.mark.parametrize(
    ("name", "written"),
    [
        *((name, no) for name in ("get_weather", "fly_home") for no in ("[1, 2]", '"Oslo"', "null", "Oslo, please")),
        *(("fly_home", nothing) for nothing in ("", " ")),
    ],
)
def test_an_input_that_is_no_object_goes_out_under_a_key_of_its_own(
    gateway: str, model: ModelServer, name: str, written: str, tools: Any, stream: bool
) -> None:
    model.plays(calling(name, written[:2], written[2:]))
    body = {"model": "native", "messages": [user("Hi.")], "tools": tools}
    message = message_of(gateway, body, stream=stream)
    given = {"__unparsedToolInput": {"raw": written, "len": len(written)}}
    assert list(map(bare, message["content"])) == [("tool_use", (name, given))]
    assert message["stop_reason"] == "tool_use"


def test_such_an_input_comes_back_to_the_model_as_it_was_written(gateway: str, model: ModelServer) -> None:
    model.plays(said("Sorry."))
    given = {"__unparsedToolInput": {"raw": '{"city": "Oslo",}', "len": 17}}
    history = [
        user("Hi."),
        turn("assistant", {**use("a", "get_weather"), "input": given}),
        turn("user", result("a", "no JSON", is_error=True)),
    ]
    assert asked(gateway, {"messages": history, "tools": TOOLS}).status == 200
    assert json.loads(model.body["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"city": "Oslo"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_reasoning_behind_a_call_stays_where_another_call_was_cut_off(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    whole_one = call_deltas("send_mail", '{"to":"a","text":"b"}', index=0, id_="a")
    cut = call_deltas("get_weather", '{"city":"Ber', index=1, id_="b")
    model.plays(chat(*whole_one, {"reasoning_content": "And the weather."}, *cut, finish="length"))
    body = {"model": "native", "messages": [user("Hi.")], "tools": [{**tool, "strict": True} for tool in TOOLS]}
    message = message_of(gateway, {**body, **THINKS}, stream=stream)
    assert ("thinking", "And the weather.") in map(bare, message["content"])
    assert [block["name"] for block in message["content"] if block["type"] == "tool_use"] == ["send_mail"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_text_and_reasoning_keep_their_order_where_a_call_is_left_out(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    whole_one, cut = call_deltas("send_mail", '{"to":"a","text":"b"}'), call_deltas("get_weather", '{"ci', index=1)
    said_ = ({"content": "First."}, {"reasoning_content": "Second."}, {"content": "Third."})
    model.plays(chat(*said_, *whole_one, *cut, finish="length"))
    body = {"model": "native", "messages": [user("Hi.")], "tools": [{**tool, "strict": True} for tool in TOOLS]}
    message = message_of(gateway, {**body, **THINKS}, stream=stream)
    told = [bare(block) for block in message["content"] if block["type"] != "tool_use"]
    assert told == [("text", "First."), ("thinking", "Second."), ("text", "Third.")]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_call_that_was_cut_off_is_not_to_be_run_because_another_is_there(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    whole_one, cut = call_deltas(*TO_BERGEN), call_deltas("fly_home", '{"by":"tr', index=1, id_="b")
    model.plays(chat(*whole_one, *cut, {"content": "HALT"}, finish="length"))
    reply = asked(gateway, {"tools": TOOLS, **STOPS, "stream": stream})
    ended = named_events(reply)[-2][1]["delta"] if stream else reply.json
    assert ended["stop_reason"] != "tool_use"


# --- requests ---

KNOWN: Final = [
    {"name": name, "description": f"Does {name}.", "input_schema": {"type": "object"}, **more}
    for name, more in {"look": {}, "paint": {"defer_loading": True}, "sing": {"defer_loading": True}}.items()
]


def schema(name: str) -> str:
    return (
        f'<function>{{"description": "Does {name}.", "name": "{name}", "parameters": {{"type": "object"}}}}</function>'
    )


def thought(words: str, signature: str = "") -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": signature}


def contents(model: ModelServer) -> list[tuple[str, Any]]:
    return [(message["role"], message["content"]) for message in model.body["messages"]]


HISTORIES: Final[Mapping[str, tuple[Mapping[str, Any], Sequence[tuple[str, Any]]]]] = {
    "texts around a block that is left out": (
        {"messages": [user("q"), turn("assistant", text("a"), {"type": "redacted_thinking"}, text("b")), user("r")]},
        [("user", "q"), ("assistant", "a\nb"), ("user", "r")],
    ),
    "two messages of the assistant": (
        {"messages": [user("q"), turn("assistant", text("a")), turn("assistant", text("b")), user("r")]},
        [("user", "q"), ("assistant", "a\nb"), ("user", "r")],
    ),
    "thinking in two blocks": (
        {"messages": [user("q"), turn("assistant", thought("1"), thought("2"), text("a")), user("r")]},
        [("user", "q"), ("assistant", "a"), ("user", "r")],
    ),
    "a billing line before the instructions": (
        {"messages": [user("q")], "system": "x-anthropic-billing-header: cc_version=2; x=1;\nBe brief."},
        [("system", "Be brief."), ("user", "q")],
    ),
    "two tools found at once": (
        {
            "messages": [
                user("q"),
                turn("assistant", use("a", "look")),
                turn("user", result("a", reference("sing", "paint"))),
            ]
        },
        [
            ("user", "q"),
            ("assistant", None),
            ("tool", f"<functions>\n{schema('sing')}\n{schema('paint')}\n</functions>"),
        ],
    ),
    "a tool found that is not offered": (
        {"messages": [user("q"), turn("assistant", use("a", "look")), turn("user", result("a", reference("dance")))]},
        [("user", "q"), ("assistant", None), ("tool", "No tool was found.")],
    ),
    "a search result that is one text": (
        {"messages": [turn("user", {"type": "search_result", "title": "T", "source": "S", "content": "C"})]},
        [("user", "Search result: T S\nC")],
    ),
}


@pytest.mark.parametrize("case", HISTORIES)
def test_a_history_reads_as_one_message_for_each_turn(gateway: str, model: ModelServer, case: str) -> None:
    body, expected = HISTORIES[case]
    model.plays(said("Yes."))
    reply = asked(gateway, {"tools": KNOWN, **body})
    assert reply.status == 200, reply.text
    assert contents(model) == expected


def test_thoughts_that_follow_each_other_are_one(gateway: str, model: ModelServer) -> None:
    model.plays(said("Yes."))
    history = [user("q"), turn("assistant", thought("One."), thought("Two."), text("a")), user("r")]
    assert asked(gateway, {"messages": history}).status == 200
    assert model.body["messages"][1]["reasoning_content"] == "One.\nTwo."


CHOICES: Final[Mapping[str, Mapping[str, Any]]] = {
    "any, of tools that were all found": {
        "tool_choice": {"type": "any"},
        "tools": KNOWN[1:],
        "messages": [user("q"), turn("assistant", use("a", "look")), turn("user", result("a", reference("paint")))],
    },
    "a tool that came with a message": {
        "tool_choice": {"type": "tool", "name": "paint"},
        "tools": KNOWN[:1],
        "messages": [
            user("q"),
            turn("system", {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": KNOWN[1]}}),
        ],
    },
    "a tool that nothing has named yet": {"tool_choice": {"type": "tool", "name": "paint"}, "tools": KNOWN},
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", CHOICES)
def test_the_choice_may_be_any_tool_that_can_be_called(
    gateway: str, model: ModelServer, case: str, stream: bool
) -> None:
    model.plays(calling("paint", "{}"))
    message = message_of(gateway, {"model": "native", "messages": [user("q")], **CHOICES[case]}, stream=stream)
    assert list(map(bare, message["content"])) == [("tool_use", ("paint", {}))]


REMOVED: Final = [
    user("q"),
    turn("system", {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "look"}}),
]
BEGUN: Final = [user("q"), turn("assistant", text('{"a":'))]
BASH: Final = {"type": "bash_20250124"}
REFUSED: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {
    "a choice of a tool that was taken away": (
        {"messages": REMOVED, "tools": KNOWN, "tool_choice": {"type": "tool", "name": "look"}},
        "tool_choice.name: Tool 'look' not found",
    ),
    "any, where all were taken away": (
        {"messages": REMOVED, "tools": KNOWN, "tool_choice": {"type": "any"}},
        "tool_choice 'any' may only be specified",
    ),
    "a choice without a type": ({"tools": KNOWN, "tool_choice": {}}, "Missing required parameter: 'tool_choice.type'"),
    "a name that is a list": ({"tools": [{**BASH, "name": ["bash"]}]}, "Invalid type for 'tools[0].name'"),
    "a name of two words": ({"tools": [{**BASH, "name": "my bash"}]}, "Invalid 'tools[0].name'"),
    "nothing but blanks": ({"messages": [user(" "), turn("user", text("\n"))]}, "Invalid 'messages'"),
    "a block of an unknown type alone": (
        {"messages": [turn("user", {"type": "txet", "text": "Hi."})]},
        "Invalid 'messages': expected a message with something in it, got blocks of unknown types: 'txet'.",
    ),
    "an image without its type": (
        {"messages": [turn("user", {"type": "image", "source": {"type": "base64", "data": "AA=="}})]},
        "Missing required parameter: 'messages[0].content[0].source.media_type'",
    ),
    "a document of another type": (
        {
            "messages": [
                turn(
                    "user",
                    {"type": "document", "source": {"type": "base64", "media_type": "text/html", "data": "AA=="}},
                )
            ]
        },
        "Unsupported value: 'messages[0].content[0].source.media_type' does not support 'text/html'",
    ),
    "a document at an address": (
        {"messages": [turn("user", {"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}})]},
        "Unsupported value: 'messages[0].content[0].source.type' does not support 'url' here",
    ),
    "a begun answer, and a call": (
        {"messages": BEGUN, "tools": KNOWN, "tool_choice": {"type": "any"}},
        "Invalid 'messages': a last message of the role 'assistant' is the start of the answer, and 'tool_choice' asks",
    ),
    "a begun answer, and a form": (
        {"messages": BEGUN, "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        "Invalid 'messages': a last message of the role 'assistant' is the start of the answer, and 'output_config.for",
    ),
    "an MCP server that is not configured": (
        {"mcp_servers": [{"type": "url", "name": "far", "url": "https://x.test/mcp"}]},
        "Unsupported value: 'mcp_servers[0].url' does not support",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused_by_name(gateway: str, model: ModelServer, case: str) -> None:
    body, words = REFUSED[case]
    reply = asked(gateway, body)
    assert (reply.status, reply.json["error"]["type"]) == (400, "invalid_request_error")
    assert reply.json["error"]["message"].startswith(words)
    assert model.asked == []


ACCEPTED: Final[Mapping[str, tuple[Mapping[str, Any], str | None]]] = {
    "what clients always send": ({"metadata": {"user_id": "u"}, "cache_control": {"type": "ephemeral"}}, None),
    "no thread": ({"thread": False}, None),
    "both searches": (
        {
            "tools": [
                {"type": f"tool_search_tool_{kind}_20251119", "name": f"tool_search_tool_{kind}"}
                for kind in ("bm25", "regex")
            ]
        },
        None,
    ),
    "an unknown part of a document": (
        {
            "messages": [
                turn(
                    "user", {"type": "document", "source": {"type": "content", "content": [{"type": "map"}, text("x")]}}
                )
            ]
        },
        "map",
    ),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_does_no_harm_passes(gateway: str, model: ModelServer, case: str) -> None:
    body, dropped = ACCEPTED[case]
    model.plays(said("Yes."))
    reply = asked(gateway, body)
    assert reply.status == 200, reply.text
    assert reply.headers.get("x-callwright-dropped-fields") == dropped


def test_a_tool_for_programs_only_is_not_offered(gateway: str, model: ModelServer) -> None:
    model.plays(said("Yes."))
    callers = {"allowed_callers": ["code_execution_20250825"]}
    assert asked(gateway, {"tools": [{**KNOWN[0], **callers}, {**BASH, "name": "bash"}]}).status == 200
    assert [tool["function"]["name"] for tool in model.body["tools"]] == ["bash"]


def test_a_call_of_a_typed_tool_is_held_until_it_fits(serve: Served, model: ModelServer) -> None:
    gateway = serve(ModelConfig(name="native", upstream=model.url, model="served/native", retries=1))
    model.plays(calling("bash", '{"command": ["ls"]}'), calling("bash", '{"command": "ls"}'))
    editor = {"type": "text_editor_20250728", "name": "edit", "input_examples": [{"command": "view", "path": "/a"}]}
    body = {"model": "native", "messages": [user("q")], "tools": [{**BASH, "name": "bash"}, editor]}
    message = message_of(gateway, body, stream=True)
    assert list(map(bare, message["content"])) == [("tool_use", ("bash", {"command": "ls"}))]
    offered = model.asked[0].body["tools"][1]["function"]
    assert offered["name"] == "edit"
    assert '{"command": "view", "path": "/a"}' in offered["description"]


@pytest.mark.parametrize(("keep", "left"), [("all", 2), ({"type": "all"}, 2), (None, 1)])
def test_old_reasoning_goes_as_the_edit_says(gateway: str, model: ModelServer, keep: Any, left: int) -> None:
    model.plays(said("Yes."))
    turns = [turn("assistant", thought(f"Thought {n}."), text(f"a{n}")) for n in range(2)]
    edit = {"type": "clear_thinking_20251015", **({"keep": keep} if keep else {})}
    history = [user("q"), turns[0], user("r"), turns[1], user("s")]
    assert asked(gateway, {"messages": history, "context_management": {"edits": [edit]}}).status == 200
    assert sum("reasoning_content" in message for message in model.body["messages"]) == left


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_thinking_before_the_begin_of_an_answer_is_left_out(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(said(" wind", "y."))
    history = [user("q"), turn("assistant", thought("Hm."), text("It is")), turn("assistant", text("very "))]
    message = message_of(gateway, {"model": "native", "messages": history}, stream=stream)
    assert list(map(bare, message["content"])) == [("text", " windy.")]
    assert model.body["messages"] == [user("q"), {"role": "assistant", "content": "It is\nvery"}]


# --- the window ---

TOO_MUCH: Final = (
    "This model's maximum context length is 4096 tokens. However, you requested 8000 tokens (3000 in the messages, "
    "5000 in the completion)."
)
ROOM: Final = 1096  # what is left of the window
OVERFLOW: Final = whole({"error": {"message": TOO_MUCH, "code": "context_length_exceeded"}}, 400)
SEARCHES: Final = [{"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}, *KNOWN]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_each_round_of_a_search_may_be_as_long_as_the_window(gateway: str, model: ModelServer, stream: bool) -> None:
    search = calling("tool_search", '{"query": "paint"}')
    model.plays(OVERFLOW, search, OVERFLOW, calling("paint", "{}"))
    body = {"model": "native", "messages": [user("Paint.")], "tools": SEARCHES, "max_tokens": 5000}
    message = message_of(gateway, body, stream=stream)
    kinds = [block["type"] for block in message["content"]]
    assert kinds == ["server_tool_use", "tool_search_tool_result", "tool_use"]
    used = 7  # by the first round
    assert [each.body["max_tokens"] for each in model.asked] == [5000, ROOM, 5000 - used, ROOM]


def test_an_answer_that_has_begun_does_not_begin_anew(gateway: str, model: ModelServer) -> None:
    begun = said("I see ", finish=None, usage=False, done=False).steps
    model.plays(Answer((*begun, *sse({"error": {"message": TOO_MUCH, "code": 400}}))), said("I see that."))
    reply = asked(gateway, {"max_tokens": 5000, "stream": True})
    assert named_events(reply)[-1][0] == "error"
    assert "I see that" not in reply.text
    assert len(model.asked) == 1


def test_an_image_counts_as_one_whatever_its_bytes_are(gateway: str, model: ModelServer) -> None:
    counts = []
    for size in (100, 400_000):
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * size}}
        body = {"model": "native", "messages": [turn("user", image, text("What is it?"))]}
        counts.append(request(gateway + COUNT, body).json["input_tokens"])
    assert counts == [1602, 1602]


def test_the_begin_of_an_answer_counts(gateway: str, model: ModelServer) -> None:
    body = {"model": "native", "messages": [user("q"), turn("assistant", text("word " * 400))]}
    assert request(gateway + COUNT, body).json["input_tokens"] == 500
