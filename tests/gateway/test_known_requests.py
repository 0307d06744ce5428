"""Requests of an agent, each with all of the one before: they say what they would say alone."""

import json
import random
from collections.abc import Callable
from copy import copy
from typing import Any, Final

import pytest

from callwright.gateway.responses.given_items import bring_tools, references, to_be_read, with_ids
from callwright.memo.prefixes import SharedList
from callwright.openai_format.tool_catalog import ToolCatalog
from tests.support.http_client import request
from tests.support.responses_client import RESPONSES, fetch, respond
from tests.support.servers import ModelServer, said

STRICT: Final = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
TOOLS: Final[list[dict[str, Any]]] = [
    {"type": "function", "name": name, "parameters": STRICT} for name in ("sow", "dig")
]
LOOSE: Final = {"type": "function", "name": "dig", "parameters": {"type": "object"}, "strict": False}


def response_items(word: str, number: int) -> list[Any]:
    items: list[Any] = [{"role": "user", "content": word}]
    for turn in range(number):
        items += [
            {"type": "function_call", "call_id": f"c{turn}", "name": "dig", "arguments": f'{{"row": {turn}}}'},
            {"type": "function_call_output", "call_id": f"c{turn}", "output": "dug"},
        ]
    return items


def messages(word: str, number: int) -> list[Any]:
    told: list[Any] = [{"role": "user", "content": word}]
    for turn in range(number):
        use = {"type": "tool_use", "id": f"c{turn}", "name": "dig", "input": {"row": turn}}
        result = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": "dug"}
        notes = [{"type": "text", "text": text} for text in ("A note.", "Another.")]
        told += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result, *notes]}]
    return told


def upstream(model: ModelServer, word: str) -> Any:
    """The latest request that the model server got, with another word in place of this one."""
    return json.loads(json.dumps(model.asked[-1].body).replace(word, "word"))


@pytest.mark.parametrize("api", ["responses", "messages"])
def test_a_server_is_asked_the_same_of_a_conversation_that_went_on(gateway: str, model: ModelServer, api: str) -> None:
    def ask(word: str, number: int) -> Any:
        model.plays(said("Well."))
        if api == "responses":
            respond(gateway, stream=False, model="native", input=response_items(word, number), tools=TOOLS)
        else:
            tools = [{"name": tool["name"], "input_schema": tool["parameters"]} for tool in TOOLS]
            body = {"model": "native", "max_tokens": 99, "messages": messages(word, number), "tools": tools}
            assert request(gateway + "/v1/messages", body).status == 200
        return upstream(model, word)

    for number in range(6):
        assert ask("agent", number) == ask(f"alone{number}", number)


def test_tools_are_echoed_as_they_are_enforced_whatever_came_before(gateway: str, model: ModelServer) -> None:
    added = {"type": "additional_tools", "tools": [LOOSE]}
    for _ in range(2):
        for items, strict in (([], True), ([added], False), ([], True)):
            model.plays(said("Well."))
            echoed = respond(
                gateway, stream=False, model="native", input=[*response_items("Hi", 1), *items], tools=TOOLS
            )["tools"]
            assert [tool["strict"] for tool in echoed] == [True, strict]


def test_each_response_has_items_of_its_own(gateway: str, model: ModelServer) -> None:
    seen: set[str] = set()
    for number in range(4):
        model.plays(said("Well."))
        items = [*response_items("Go", number), {"role": "user", "content": "On.", "id": "an odd é id " * 40}]
        made = respond(gateway, stream=False, model="native", input=items)
        _, listed = fetch(f"{gateway}{RESPONSES}/{made['id']}/input_items?limit=100&order=asc")
        ids = [item["id"] for item in listed["data"]]
        assert [id_.partition("_")[0] for id_ in ids[:-1]] == ["msg", *["fc", "fco"] * number]
        assert ids[-1] == items[-1]["id"]
        assert seen.isdisjoint(ids[:-1])
        seen |= set(ids[:-1])
        model.plays(said("Well."))  # each is found by its id, the odd one, too
        respond(
            gateway, stream=False, model="native", input=[{"type": "item_reference", "id": ids[0]}, {"id": ids[-1]}]
        )
        assert [one["content"] for one in model.asked[-1].body["messages"]] == ["Go", "On."]


@pytest.mark.parametrize("seed", range(40))
def test_items_of_a_list_that_goes_on_are_taken_as_those_of_a_new_one(seed: int) -> None:
    pick = random.Random(seed).choice
    items: list[Any] = []
    for _ in range(8):
        items = [
            *items,
            pick(
                [
                    *({"role": "user", "content": "Hi."}, {"type": "reasoning", "id": pick(["", None, "rs"])}),
                    *({"type": "item_reference", "id": "x"}, {"id": "x"}, {}, {"type": {}}, {"type": None, "id": "y"}),
                    *({"type": "function_call", "name": "dig"}, {"type": "additional_tools"}, {"type": "odd"}),
                ]
            ),
        ]
        known = SharedList(items)
        assert references(known) == references(items)
        assert bring_tools(known) is bring_tools(items)
        made, cold = with_ids(known), with_ids(items)
        assert to_be_read(known, known) == to_be_read(items, items)
        for one, other, item in zip(made, cold, items, strict=True):
            assert one.keys() == other.keys()
            assert str(one.get("id")).partition("_")[0] == str(other.get("id")).partition("_")[0]
            assert {**one, "id": 0} == {**item, "id": 0} if "id" in one else one is item


def test_catalogues_that_took_the_same_tools_say_so() -> None:
    given = [*TOOLS, {"type": "function", "name": "late", "defer_loading": True}, {"type": "tool_search"}]
    offer = ToolCatalog()
    offer.add(given)
    before = offer.tools, offer.deferred, offer.names.flat("late"), offer.cache_key
    other = copy(offer)
    assert (other.tools, other.deferred, other.names.flat("late"), other.cache_key) == before
    other.show("late")
    assert not other.deferred
    assert (offer.tools, offer.deferred) == before[:2]
    takes: tuple[Callable[[ToolCatalog], Any], ...] = (
        lambda one: one.load([LOOSE], "x"),
        lambda one: one.add([{"type": "local_shell"}]),
        lambda one: one.add([{"type": "web_search"}]),
        lambda one: one.offer_web_search(None, "web_search", "x"),
        lambda one: one.offer_as_named({**LOOSE, "name": "new"}, "x", "responses"),
    )
    for take in takes:
        other = copy(offer)
        take(other)
        assert other.cache_key != offer.cache_key
    assert (offer.tools, offer.deferred, offer.names.flat("late"), offer.cache_key) == before
    assert not offer.left_out
