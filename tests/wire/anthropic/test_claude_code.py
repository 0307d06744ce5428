"""Requests of the shape that Claude Code sends: how they are read, and what it gets for them in each way of asking.

`claude_code.json` holds them; `tests/clients/test_claude_code.py` drives the real one.
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from callwright.calls.history import normalized
from callwright.conversation import Call, CallOutput, Item, Message, Reasoning
from callwright.wire.anthropic.request import decode_request, read_request
from tests import conftest
from tests.conftest import Served
from tests.support.http_client import request as post
from tests.support.messages_client import COUNT, message_of
from tests.support.outputs import FEW_WAYS
from tests.support.servers import ModelServer
from tests.support.turns import shown, wrote

_DATA: Final = json.loads(Path(__file__).with_name("claude_code.json").read_text(encoding="utf-8"))
NAMES: Final = tuple(_DATA["requests"])
TITLE: Final = "a title is asked for"
named = pytest.mark.parametrize("name", NAMES)
ways = pytest.mark.parametrize("way", FEW_WAYS)


def request(name: str, **more: Any) -> dict[str, Any]:
    """A request as it is sent."""
    own = {key: value for key, value in _DATA["requests"][name].items() if key != "reads"}
    tools = [_DATA["tools"][tool] for tool in own["tools"]]
    given = {**_DATA["every"], **own, "tools": tools, **more}
    return {key: value for key, value in given.items() if value is not None}


def told(item: Item) -> str:
    """An item in one line."""
    match item:
        case Message():
            return f"{item.role}: {item.text}"
        case Reasoning(text):
            return f"thought: {text}"
        case Call():
            return f"{item.name} {item.arguments}"
        case CallOutput():
            return f"{item.call_id}: {item.text}"
    raise AssertionError(item)


@named
def test_it_is_read(name: str) -> None:
    given = request(name)
    parsed = read_request(decode_request(given), given, {})
    conversation = parsed.asked.conversation
    callable_ = [tool.name for tool in conversation.tools]
    listed = callable_ if conversation.shown_tools is None else [tool.name for tool in conversation.shown_tools]
    reads = _DATA["requests"][name]["reads"]
    assert [told(item) for item in normalized(conversation.items)] == reads["items"]
    assert (listed, callable_) == (reads["listed"], reads["callable"])
    assert parsed.dropped <= {"metadata", "thinking.display", "thinking.budget_tokens"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@ways
@named
def test_it_is_answered(gateway: str, model: ModelServer, name: str, way: str, stream: bool) -> None:
    words = '{"title": "Dry"}' if name == TITLE else "Quite dry."
    model.plays(wrote(way, words))
    message = message_of(gateway, request(name, model=way, stream=stream), stream=stream)
    assert [block["text"] for block in message["content"]] == [words]
    assert "billing" not in shown(model.body)
    assert "Never call this." not in json.dumps(model.body)


@ways
def test_a_tool_that_was_found_before_a_summary_is_called_without_a_new_search(
    serve: Served, model: ModelServer, way: str
) -> None:
    gateway = serve(*conftest.scripted_models(model.url, retries=1))
    model.plays(wrote(way, "", [("mcp__shed__rain", {"days": 7})]))
    name = "behind a summary: the search that found a tool is gone, its call is not"
    message = message_of(gateway, request(name, model=way), stream=True)
    assert [(block["name"], block["input"]) for block in message["content"]] == [("mcp__shed__rain", {"days": 7})]
    assert len(model.asked) == 1


@ways
def test_a_title_is_asked_for_until_it_is_one(serve: Served, model: ModelServer, way: str) -> None:
    gateway = serve(*conftest.scripted_models(model.url, retries=1))
    model.plays(wrote(way, "A dry garden."), wrote(way, '```json\n{"title": "Dry"}\n```'))
    message = message_of(gateway, request(TITLE, model=way), stream=True)
    (block,) = message["content"]
    assert json.loads(block["text"]) == {"title": "Dry"}
    assert len(model.asked) == 2


@named
def test_its_tokens_are_counted_without_the_rest(gateway: str, model: ModelServer, name: str) -> None:
    given = request(name)
    few = {key: given[key] for key in ("model", "messages", "tools") if given.get(key)}
    counted = post(gateway + COUNT, few, headers={"anthropic-version": "2023-06-01"})
    assert (counted.status, not model.asked) == (200, True)
    assert counted.json["input_tokens"] > 0
