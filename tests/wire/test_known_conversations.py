"""A growing conversation: only its new items are read, and each request reads the same as without earlier ones."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import callwright
from callwright.errors import RequestError
from callwright.gateway.responses.given_items import to_be_read
from callwright.memo import prefixes
from callwright.memo.prefixes import SharedList
from callwright.openai_format.tool_catalog import ToolCatalog
from callwright.settings.bounds import Bounds
from callwright.tolerant_json.codec import decode
from callwright.wire.anthropic.blocks import MessageReader
from callwright.wire.anthropic.blocks import read_messages as read_blocks
from callwright.wire.anthropic.request import decode_request as decode_messages
from callwright.wire.anthropic.request import read_request as read_messages
from callwright.wire.body import decoded
from callwright.wire.responses.input_items import InputItemReader, read_along
from callwright.wire.responses.request import decode_request, read_request
from callwright.wire.sealed import sealed
from callwright.wire.searches import sealed_result
from tests.support.fresh import caches, forget
from tests.support.growing_conversations import (
    FOUND,
    MESSAGES_TOOLS,
    RESPONSES_TOOLS,
    SWOLLEN,
    bodies,
    messages_turn,
    response_turn,
)

SOURCES: Final = str(Path(callwright.__file__).parent)
BOUNDS: Final = Bounds()
OFFER: Final = ToolCatalog()
CATALOG: Final = ToolCatalog(checks=False)

STORED: Final[tuple[Any, ...]] = (None, {"role": "user", "content": "One."}, {"role": "user", "content": "Another."})


def asked_responses(given: Any, *, mend: bool) -> Any:
    request = decode_request(given)
    stored = STORED[len(given["input"]) % len(STORED)]
    named = [item.get("type") == "item_reference" for item in given["input"]]
    items = [stored or item if is_named else item for item, is_named in zip(given["input"], named, strict=True)]
    request.input = to_be_read(items, items)
    read = read_request(request, given, [], mend=mend, searches_web=True)
    offer = read.offer
    return (
        *(read.conversation, read.fields, read.compacts, read.approved, read.listed, read.sources),
        *(offer.tools, offer.deferred, offer.search, offer.web, offer.left_out),
    )


def asked_messages(given: Any, *, mend: bool) -> Any:
    parsed = read_messages(decode_messages(given), given, {}, searches_web=mend)
    offer = parsed.asked.offer
    return (
        *(parsed.asked.conversation, parsed.asked.fields, parsed.asked.sources, parsed.dropped, parsed.edits),
        *(offer.tools, offer.deferred, offer.search, offer.web, offer.left_out),
    )


def outcome(ask: Callable[..., Any], given: Any, *, mend: bool) -> Any:
    try:
        return ask(given, mend=mend)
    except RequestError as error:
        return str(error), error.param, error.code, error.status


ASKED: Final = {"responses": asked_responses, "messages": asked_messages}


@pytest.mark.parametrize("mend", [False, True], ids=["plain", "mended"])
@pytest.mark.parametrize("api", ASKED)
@pytest.mark.parametrize("seed", range(120))
def test_a_conversation_that_goes_on_is_read_as_if_it_were_new(api: str, seed: int, mend: bool) -> None:
    for body in bodies(api, seed):
        text = json.dumps(body).encode()
        cold = outcome(ASKED[api], decode(text), mend=mend)
        for _ in range(2):
            assert outcome(ASKED[api], decoded(text, BOUNDS), mend=mend) == cold
        assert decoded(text, BOUNDS) == json.loads(text)


@pytest.mark.parametrize("api", ASKED)
def test_random_requests_are_good_and_bad(api: str) -> None:
    told = [outcome(ASKED[api], body, mend=False) for seed in range(120) for body in bodies(api, seed)]
    bad = [one for one in told if isinstance(one[0], str)]
    assert len(told) - len(bad) > 600
    assert len({one[0] for one in bad}) > 8


def test_a_text_that_is_much_longer_than_what_it_came_in_is_not_kept() -> None:
    thought = {"type": "reasoning", "summary": [], "encrypted_content": SWOLLEN}
    said = {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": SWOLLEN}]}
    user = {"role": "user", "content": "Dew."}
    for api, body in (
        ("responses", {"model": "m", "input": [user, thought, user]}),
        ("messages", {"model": "m", "max_tokens": 9, "messages": [user, said, user]}),
    ):
        given: Any = decoded(json.dumps(body), BOUNDS)
        outcome(ASKED[api], given, mend=True)
        values = given["input" if api == "responses" else "messages"]
        assert type(values) is SharedList
        known: Any = prefixes._MEMORY.find((len(values), id(values[-1])))
        assert known.results
        readers = [made for _, made in known.results.values() if isinstance(made, InputItemReader | MessageReader)]
        assert not any("so so so" in repr(vars(reader)) for reader in readers)


def test_what_there_is_room_for_counts_what_came_before() -> None:
    texts = [f"{number:x} " * 60 for number in range(3)]
    items = [{"type": "reasoning", "summary": [], "encrypted_content": sealed(text)} for text in texts]
    for number in (1, 2, 3, 3):
        given: Any = decoded(json.dumps({"model": "m", "input": items[:number]}), BOUNDS)
        reader = read_along(InputItemReader(OFFER), given["input"], given["input"])
        cold = InputItemReader(OFFER)
        cold.read(given["input"], "input")
        assert reader.found == cold.found
        assert reader._sealed.left == cold._sealed.left


def entered(ask: Callable[..., Any], given: Any) -> int:
    """How many functions of ours it takes to read a request."""
    count = 0

    def called(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(SOURCES)

    sys.setprofile(called)
    try:
        ask(given, mend=False)
    finally:
        sys.setprofile(None)
    return count


def long_turn(api: str, number: int) -> list[Any]:
    if api == "responses":
        return response_turn(lambda choices: choices[0], number)
    return messages_turn(lambda choices: choices[-1], number)


@pytest.mark.parametrize("api", ASKED)
def test_only_what_is_new_is_read(api: str) -> None:
    forget(caches())  # a full memory releases old items, which costs entries
    said: list[Any] = [{"role": "user", "content": f"Sow by {api}."}]
    counts = []
    for number in range(60):
        said = [*said, *long_turn(api, number)]
        body: dict[str, Any] = {"model": "m", "input": said, "tools": RESPONSES_TOOLS[0]}
        if api == "messages":
            body = {"model": "m", "max_tokens": 9, "messages": said, "tools": MESSAGES_TOOLS[1]}
        counts.append(entered(ASKED[api], decoded(json.dumps(body), BOUNDS)))
    assert max(counts[2:]) <= min(counts[2:]) + 10


def every_message() -> list[Any]:
    def says(role: str, *blocks: Any) -> Any:
        return {"role": role, "content": list(blocks)}

    def reference(name: str) -> Any:
        return {"type": "tool_reference", "tool_name": name, "name": name}

    def result(id_: str, *content: Any, kind: str = "tool_result") -> Any:
        return {"type": kind, "tool_use_id": id_, "content": list(content)}

    text = {"type": "text", "text": "Moss."}
    use = {"type": "tool_use", "id": "a", "name": "sow", "input": {}}
    thought = {"type": "thinking", "thinking": "", "signature": sealed("Hm. " * 9)}
    hit = {"url": "https://c.example", "title": "C", "encrypted_content": sealed_result(FOUND)}
    other = {"url": "https://d.example", "title": "D"}
    return [
        says("system", text),
        says("user", text),
        says("user", text, {"type": "odd"}),
        says("assistant", thought, thought, text),
        says("assistant", text, use),
        says("user", result("a"), text),
        says("assistant", use),
        says("user", result("a", reference("late"), text)),
        says("system", {"type": "tool_removal", "tool": reference("late")}),
        says("system", {"type": "tool_removal", "tool": reference("sow")}),
        says("assistant", {"type": "server_tool_use", "id": "s", "name": "tool_search_tool_bm25", "input": {}}),
        says(
            "assistant",
            {**result("s", kind="tool_search_tool_result"), "content": {"tool_references": [reference("later")]}},
        ),
        says("assistant", {"type": "server_tool_use", "id": "w", "name": "web_search", "input": {"query": "?"}}),
        says("assistant", result("w", hit, kind="web_search_tool_result")),
        says("assistant", {"type": "server_tool_use", "id": "v", "name": "web_search", "input": {"query": "?"}}),
        says("assistant", result("v", other, kind="web_search_tool_result"), text),
        {**says("system", text), "clear_at": "next_user_message"},
        says("user", text),
        says("system", {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "late"}}),
        says("assistant", use),
    ]


@pytest.mark.parametrize("system", ["Be kind.", None, "Be quick."])
@pytest.mark.parametrize("known", ["none", "all before", "all before, with other instructions"])
def test_each_message_is_read_behind_those_that_are_known(known: str, system: Any) -> None:
    messages = every_message()
    messages[1]["content"].append({"type": "text", "text": f"{known}, {system}"})
    for number in range(1, len(messages) + 1):
        body = {"model": "m", "max_tokens": 9, "tools": MESSAGES_TOOLS[1], "system": system}
        asked = (
            [messages[:number]] if known == "none" else [messages[:number], messages[:number], messages[: number + 1]]
        )
        for one in asked:
            text = json.dumps({**body, "messages": one})
            cold, warm = decode(text), decoded(text, BOUNDS)
            if known.endswith("instructions"):
                first = json.dumps({**body, "messages": one, "system": "Hm." if system is None else None})
                outcome(asked_messages, decoded(first, BOUNDS), mend=True)
            assert outcome(asked_messages, warm, mend=True) == outcome(asked_messages, cold, mend=True)
            assert not isinstance(outcome(asked_messages, cold, mend=True)[0], str)


def test_what_there_is_room_for_counts_what_came_before_in_messages() -> None:
    messages = every_message()[1:]
    for number in range(1, len(messages) + 1):
        text = json.dumps({"model": "m", "max_tokens": 9, "messages": messages[:number]})
        left = []
        for given in (decoded(text, BOUNDS), decode(text)):
            assert isinstance(given, dict)
            reader = read_blocks(MessageReader(CATALOG), decode_messages(given).messages, given["messages"])
            left.append((reader._sealed.left, reader._unsealer.left, reader.sources, reader.found))
        assert left[0] == left[1]


@pytest.mark.parametrize("searches", [[True, False], [False, True]])
def test_a_gateway_without_search_reads_nothing_as_one_with_it(searches: list[bool]) -> None:
    """Tools that come with an item are taken by the rules of the model that is asked."""
    items = [
        {"role": "user", "content": f"Rain? {searches}"},
        {"type": "additional_tools", "tools": [{"type": "web_search"}]},
        {"role": "user", "content": "Well?"},
    ]
    tools = [{"type": "function", "name": "sow"}]
    text = json.dumps({"model": "m", "input": items, "tools": tools}).encode()

    def seen(given: Any, *, searches_web: bool) -> Any:
        request = decode_request(given)
        request.input = given["input"]
        read = read_request(request, given, [], searches_web=searches_web)
        assert read.offer is not None
        return read.conversation, read.offer.web, read.offer.left_out

    for searches_web in searches:
        cold = seen(decode(text), searches_web=searches_web)
        assert seen(decoded(text, BOUNDS), searches_web=searches_web) == cold
