"""Requests of the Messages API, read as conversations."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from callwright.calls.history import normalized
from callwright.conversation import Call, CallOutput, Item, MediaPart, Message, NamedTool, Reasoning, TextPart
from callwright.wire.anthropic.request import ParsedMessages, decode_request, read_request
from callwright.wire.sealed import sealed

WEATHER = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
NEWS = {"name": "mcp__paper__get_news", "input_schema": {"type": "object", "properties": {}}, "defer_loading": True}
PLACEHOLDER = {
    "name": "Placeholder",
    "description": "Never call this.",
    "input_schema": {"type": "object"},
    "defer_loading": True,
}
NEWS_BLOCK = (
    '<functions>\n<function>{"description": "", "name": "mcp__paper__get_news", "parameters": {"type": "object", '
    '"properties": {}}}</function>\n</functions>'
)


def read(*messages: Mapping[str, Any], **fields: Any) -> ParsedMessages:
    given = {"model": "m", "max_tokens": 100, "messages": list(messages), **fields}
    return read_request(decode_request(given), given, {})


def items(*messages: Mapping[str, Any], **fields: Any) -> list[Item]:
    return list(normalized(read(*messages, **fields).asked.conversation.items))


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else list(blocks)}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def use(id_: str, name: str = "get_weather", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": given}


def result(id_: str, content: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, **({} if content is None else {"content": content}), **more}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def said(role: Any, words: str) -> Message:
    return Message(role, (TextPart(words),))


def answered(id_: str, words: str) -> CallOutput:
    return CallOutput(id_, (TextPart(words),) if words else ())


HI = user("hi")
PARIS = Call("get_weather", '{"city":"Paris"}', id="a")
ROME = Call("get_weather", '{"city":"Rome"}', id="b")
BILLING = text("x-anthropic-billing-header: version=9; entry=x;")

READ: dict[str, tuple[list[dict[str, Any]], list[Item]]] = {
    "text blocks are lines of their own": ([user(text("one"), text("two"))], [said("user", "one\ntwo")]),
    "blank ones are none": ([user(text(""), text(" \n"), text("two"))], [said("user", "two")]),
    "messages of one role are one": ([user("one"), user("two")], [said("user", "one\ntwo")]),
    "a call and its result": (
        [HI, assistant(text("Look."), use("a", city="Paris")), user(result("a", "18"))],
        [said("user", "hi"), said("assistant", "Look."), PARIS, answered("a", "18")],
    ),
    "results in the order in which they ended": (
        [HI, assistant(use("a", city="Paris"), use("b", city="Rome")), user(result("b", "20"), result("a", "18"))],
        [said("user", "hi"), PARIS, ROME, answered("a", "18"), answered("b", "20")],
    ),
    "text behind results": (
        [HI, assistant(use("a", city="Paris")), user(result("a", [text("18")]), text("and?"))],
        [said("user", "hi"), PARIS, answered("a", "18"), said("user", "and?")],
    ),
    "a result without content": (
        [HI, assistant(use("a", city="Paris")), user(result("a"))],
        [said("user", "hi"), PARIS, answered("a", "")],
    ),
    "a result that is an error": (
        [HI, assistant(use("a", city="Paris")), user(result("a", "no such city", is_error=True))],
        [said("user", "hi"), PARIS, CallOutput("a", (TextPart("Error: "), TextPart("no such city")))],
    ),
    "a call without a result": (
        [HI, assistant(use("a", city="Paris")), user("stop")],
        [said("user", "hi"), PARIS, answered("a", "This call was not run."), said("user", "stop")],
    ),
    "a result without a call": (
        [HI, user(result("x", "18"))],
        [said("user", "hi"), Message("user", (TextPart("The output of a call that is not shown:\n"), TextPart("18")))],
    ),
    "calls of one id": (
        [
            HI,
            assistant(use("a", city="Paris")),
            user(result("a", "18")),
            assistant(use("a", city="Rome")),
            user(result("a", "20")),
        ],
        [
            said("user", "hi"),
            PARIS,
            answered("a", "18"),
            Call("get_weather", '{"city":"Rome"}', id="a_mended_3"),
            answered("a_mended_3", "20"),
        ],
    ),
    "an input that was no JSON": (
        [
            HI,
            assistant(use("a", __unparsedToolInput={"raw": '{"city": "Paris",}', "len": 18})),
            user(result("a", "no")),
        ],
        [said("user", "hi"), Call("get_weather", '{"city": "Paris"}', id="a"), answered("a", "no")],
    ),
    "reasoning of this gateway, shown or not": (
        [
            HI,
            assistant({"type": "thinking", "thinking": "", "signature": sealed("Hm.")}, text("Hello")),
            user("and?"),
            assistant({"type": "thinking", "thinking": "Ah.", "signature": sealed("Ah.")}, text("Yes")),
            user("so"),
        ],
        [
            said("user", "hi"),
            Reasoning("Hm."),
            said("assistant", "Hello"),
            said("user", "and?"),
            Reasoning("Ah."),
            said("assistant", "Yes"),
            said("user", "so"),
        ],
    ),
    "reasoning that nobody signed, and that of others": (
        [
            HI,
            assistant({"type": "thinking", "thinking": "Hm.", "signature": ""}, text("Hello")),
            user("and?"),
            assistant(
                {"type": "thinking", "thinking": "Ah.", "signature": "EqQBCkYICB"},
                {"type": "redacted_thinking", "data": "x"},
                text("Yes"),
            ),
            user("so"),
        ],
        [
            said("user", "hi"),
            Reasoning("Hm."),
            said("assistant", "Hello"),
            said("user", "and?"),
            said("assistant", "Yes"),
            said("user", "so"),
        ],
    ),
    "a system message in the middle": (
        [HI, {"role": "system", "content": [text("Today is Monday.")]}],
        [said("user", "hi"), said("developer", "Today is Monday.")],
    ),
    "one that counts until the user speaks": (
        [
            HI,
            {"role": "system", "content": "Soon.", "clear_at": "next_user_message"},
            assistant(text("Yes")),
            user("so"),
        ],
        [said("user", "hi"), said("assistant", "Yes"), said("user", "so")],
    ),
    "documents and search results": (
        [
            user(
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "Tea."},
                    "title": "Notes",
                },
                {"type": "search_result", "source": "https://x", "title": "X", "content": [text("It is X.")]},
                text("?"),
            )
        ],
        [said("user", "Document: Notes\nTea.\nSearch result: X https://x\nIt is X.\n?")],
    ),
    "what means nothing here": (
        [user({"type": "container_upload", "file_id": "f"}, {"type": "block_of_tomorrow"}, text("hi"))],
        [said("user", "hi")],
    ),
}


@pytest.mark.parametrize("what", READ)
def test_messages_are_read(what: str) -> None:
    messages, wanted = READ[what]
    assert items(*messages, tools=[WEATHER]) == wanted


def test_images_and_files_become_parts_of_chat() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    linked = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    paper = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "BBBB"}}
    (message,) = items(user(image, linked, paper))
    assert isinstance(message, Message)
    assert [part.value for part in message.parts if isinstance(part, MediaPart)] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,BBBB"}},
    ]


@pytest.mark.parametrize(
    "system",
    ["Be kind.\nBe brief.", [BILLING, text("Be kind."), text("Be brief.", cache_control={"type": "ephemeral"})]],
)
def test_instructions_come_first_without_what_only_bills(system: Any) -> None:
    assert items(HI, system=system) == [said("system", "Be kind.\nBe brief."), said("user", "hi")]


def test_a_system_message_reads_alike_as_text_and_as_a_list() -> None:
    listed = items(HI, {"role": "system", "content": [text("It is Monday.")]})
    assert listed == items(HI, {"role": "system", "content": "It is Monday."})


def test_a_deferred_tool_is_shown_where_it_is_found_and_can_be_called_from_there() -> None:
    search = {"name": "ToolSearch", "input_schema": {"type": "object"}}
    first = read(HI, tools=[search, PLACEHOLDER])
    assert [tool.name for tool in first.asked.conversation.tools] == ["ToolSearch"]
    found = result("a", [{"type": "tool_reference", "tool_name": NEWS["name"]}])
    asked = read(
        HI, assistant(use("a", "ToolSearch")), user(found), tools=[NEWS, search, PLACEHOLDER]
    ).asked.conversation
    assert asked.items[-1] == CallOutput("a", (TextPart(NEWS_BLOCK),))
    assert [tool.name for tool in asked.tools] == ["ToolSearch", NEWS["name"]]
    assert [tool.name for tool in asked.shown_tools or ()] == ["ToolSearch"]


def test_tools_are_added_and_removed_on_the_way() -> None:
    inline = {"type": "tool_definition", "definition": {"name": "late", "input_schema": {"type": "object"}}}
    change = {
        "role": "system",
        "content": [
            {"type": "tool_addition", "tool": {"type": "tool_reference", "name": NEWS["name"]}},
            {"type": "tool_addition", "tool": inline},
            {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "get_weather"}},
        ],
    }
    asked = read(HI, change, tools=[WEATHER, NEWS]).asked.conversation
    assert [tool.name for tool in asked.tools] == [NEWS["name"], "late"]
    assert [tool.name for tool in asked.shown_tools or ()] == ["get_weather"]
    told = asked.items[-1]
    assert isinstance(told, Message)
    assert NEWS_BLOCK in told.text
    assert told.text.endswith("These tools cannot be called any more: get_weather.")


@pytest.mark.parametrize(
    ("kind", "name"),
    [("bash_20250124", "bash"), ("text_editor_20250728", "str_replace_based_edit_tool"), ("memory_20250818", "memory")],
)
def test_a_tool_known_by_its_type_gets_its_schema(kind: str, name: str) -> None:
    (tool,) = read(HI, tools=[{"type": kind, "name": name}]).asked.conversation.tools
    assert (tool.name, (tool.parameters or {})["type"]) == (name, "object")
    assert "command" in (tool.parameters or {})["properties"]


def test_examples_of_inputs_stand_with_the_description() -> None:
    (tool,) = read(HI, tools=[{**WEATHER, "input_examples": [{"city": "Zürich"}]}]).asked.conversation.tools
    assert tool.description == 'The weather in a city.\n\nExamples of inputs:\n{"city": "Zürich"}'


def test_a_named_tool_is_shown_at_once() -> None:
    asked = read(HI, tools=[WEATHER, NEWS], tool_choice={"type": "tool", "name": NEWS["name"]}).asked.conversation
    assert asked.tool_choice == NamedTool(str(NEWS["name"]))
    assert asked.shown_tools is None
    assert [tool.name for tool in asked.tools] == ["get_weather", NEWS["name"]]


# --- edits of the context ---


def work(calls: int) -> list[dict[str, Any]]:
    """So many calls, each answered by 400 characters."""
    messages = [HI]
    for number in range(calls):
        thought = {"type": "thinking", "thinking": f"T{number}", "signature": ""}
        messages += [assistant(thought, use(f"c{number}", city=str(number))), user(result(f"c{number}", "x" * 400))]
    return messages


@pytest.mark.parametrize(
    ("edit", "cleared"),
    [
        ({"trigger": {"type": "tool_uses", "value": 3}, "keep": {"type": "tool_uses", "value": 1}}, 4),
        ({"trigger": {"type": "input_tokens", "value": 100}}, 2),
        ({"trigger": {"type": "input_tokens", "value": 100_000}}, 0),
        ({"trigger": {"type": "tool_uses", "value": 5}}, 0),
        ({"trigger": {"type": "tool_uses", "value": 1}, "exclude_tools": ["get_weather"]}, 0),
        ({"trigger": {"type": "tool_uses", "value": 1}, "clear_at_least": {"type": "input_tokens", "value": 5_000}}, 0),
    ],
)
def test_results_of_old_calls_are_cleared(edit: dict[str, Any], cleared: int) -> None:
    edits = {"edits": [{"type": "clear_tool_uses_20250919", **edit}]}
    parsed = read(*work(5), tools=[WEATHER], context_management=edits)
    outputs = [item.text for item in parsed.asked.conversation.items if isinstance(item, CallOutput)]
    assert outputs == ["[Old tool result content cleared]"] * cleared + ["x" * 400] * (5 - cleared)
    assert [edit.cleared_tool_uses for edit in parsed.edits or ()] == ([cleared] if cleared else [])


@pytest.mark.parametrize(
    ("keep", "left"),
    [("all", 4), ({"type": "thinking_turns", "value": 1}, 1), ({"type": "thinking_turns", "value": 3}, 3)],
)
def test_old_reasoning_is_cleared_as_far_as_it_is_asked_for(keep: Any, left: int) -> None:
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": keep}]}
    parsed = read(*work(4), tools=[WEATHER], context_management=edits)
    kept = [item.text for item in parsed.asked.conversation.items if isinstance(item, Reasoning)]
    assert kept == [f"T{number}" for number in range(4 - left, 4)]


def test_an_edit_that_is_not_known_is_named() -> None:
    parsed = read(HI, context_management={"edits": [{"type": "compact_20260112"}]})
    assert "compact_20260112" in parsed.dropped


def test_an_added_tool_that_only_programs_may_call_is_not_offered_and_is_named() -> None:
    for_programs = {**NEWS, "allowed_callers": ["code_execution_20260120"]}
    added = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": for_programs}}
    parsed = read(HI, {"role": "system", "content": [added]}, HI)
    assert parsed.asked.conversation.tools == ()
    assert parsed.dropped == {"tool_addition.allowed_callers"}


def test_a_field_is_named_however_deep_its_block_is() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://pictures.example/a.png"}}
    shown = {**image, "transformations": {"oversized_image": "error"}}
    page = {"type": "document", "source": {"type": "content", "content": [shown]}}
    assert read(user(page)).dropped == {"image.transformations"}
    assert read(user({**page, "source": {"type": "content", "content": [image]}})).dropped == frozenset()


def test_what_is_left_out_is_named() -> None:
    parsed = read(user({"type": "container_upload"}, text("hi")), metadata={"user_id": "u"}, speed="fast")
    assert parsed.dropped == {"container_upload", "speed"}


# --- prompts keep their begin: see tests/turn/test_prompt_prefix.py ---


def test_json_of_inputs_is_that_of_the_request() -> None:
    given: dict[str, Any] = {"path": "a.txt", "edits": [{"old": "\u00e9", "new": None}], "n": 1.5}
    call = items(HI, assistant(use("a", **given)), user(result("a", "ok")), tools=[WEATHER])[1]
    assert isinstance(call, Call)
    assert json.loads(call.arguments) == given
