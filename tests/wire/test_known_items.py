"""Items, and messages of Anthropic's API, that came before: what is kept of them changes nothing of what is said."""

import json
import random
from typing import Any, Final

import pytest

from callwright.conversation import Call, CallOutput
from callwright.errors import RequestError
from callwright.memo.prefixes import SharedList
from callwright.settings.bounds import Bounds
from callwright.tolerant_json.codec import decode
from callwright.wire.anthropic.request import decode_request as decode_messages
from callwright.wire.anthropic.request import read_request as read_messages
from callwright.wire.body import decoded
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.responses.input_items import InputItemReader
from callwright.wire.responses.request import decode_request, read_request
from callwright.wire.responses.unread_fields import unread_fields
from tests.support.fresh import caches, forget

BOUNDS: Final = Bounds()
TOOLS: Final = [
    {"type": "function", "name": "sow", "parameters": {"type": "object"}, "x": 1},
    {"type": "custom", "name": "hum", "format": {"type": "text"}},
    {"type": "namespace", "name": "shed", "tools": [{"type": "function", "name": "rake"}]},
]
PARTS: Final[tuple[Any, ...]] = (
    *("", "Moss.", None, 3),
    [{"type": "input_text", "text": "Fern", "cache": True}],
    [{"type": "output_text", "text": "Fern"}],
    [{"type": "input_image", "image_url": "data:,", "detail": "low"}],
    [{"type": "input_image"}],
)


def item(random_: random.Random) -> Any:
    id_, pick = random_.choice(["a", "b", "c", None]), random_.choice
    given: dict[str, Any] = pick(
        [
            {"role": pick(["user", "assistant", "developer", "gnome"]), "content": pick(PARTS)},
            {"type": "message", "role": "user", "content": "Again.", "id": pick(["m1", "m2"])},
            {"type": "function_call", "call_id": id_, "name": pick(["sow", "weed"]), "arguments": pick(["{}", "{", 1])},
            {"type": "function_call", "call_id": id_, "name": "rake", "namespace": "shed", "arguments": "{}"},
            {"type": "function_call_output", "call_id": id_, "output": pick(PARTS)},
            {"type": "function_call_output", "call_id": id_, "name": "weed", "output": "Done."},
            {"type": "custom_tool_call", "call_id": id_, "name": "hum", "input": "la"},
            {"type": "custom_tool_call_output", "call_id": id_, "output": "hm"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Rain?"}]},
            {"type": "shell_call_output", "call_id": id_, "output": "x", "status": "completed"},
            {"type": "mcp_list_tools", "server_label": "s", "tools": []},
            {"type": "additional_tools", "tools": [{"type": "function", "name": f"late_{random_.randrange(2)}"}]},
            {"type": "compaction_trigger"},
        ]
    )
    return given if random_.randrange(25) else pick([{}, {"type": "riddle"}, {"type": {}}])


def turn(number: int) -> list[Any]:
    """A call and its output."""
    id_ = f"call_{number}"
    call = {"type": "function_call", "call_id": id_, "name": "sow", "arguments": f'{{"row": {number % 2}}}'}
    return [call, {"type": "function_call_output", "call_id": id_, "output": "sown"}]


def conversations(seed: int) -> list[list[Any]]:
    """Requests of one client, each with the items of the one before, at times with some of them gone or moved."""
    random_ = random.Random(seed)
    items: list[Any] = [{"role": "user", "content": "Sow."}]
    asked: list[list[Any]] = []
    for number in range(8):
        items = items + (turn(number) if seed % 2 else [item(random_)])
        if not random_.randrange(5):
            items = [items[0], *items[random_.choice([1, 2, 3]) :]]
        asked.append(items)
    return asked


def outcome(given: Any, items: Any, *, mend: bool) -> Any:
    try:
        request = decode_request(given)
        request.input = items
        return read_request(request, given, [], mend=mend), unread_fields(given, items)
    except RequestError as error:
        return str(error), error.param, error.code, error.status


def told(read: Any) -> Any:
    """What counts of an outcome."""
    if not isinstance(read[0], ParsedRequest):
        return read
    asked, unread = read
    return asked.conversation, asked.fields, asked.compacts, asked.approved, asked.listed, asked.sources, unread


@pytest.mark.parametrize("mend", [False, True], ids=["refused", "mended"])
@pytest.mark.parametrize("seed", range(60))
def test_a_request_is_read_as_if_none_had_come_before(seed: int, mend: bool) -> None:
    for items in conversations(seed):
        body = json.dumps({"model": "m", "tools": TOOLS, "input": items}).encode()
        plain = decode(body)
        cold = told(outcome(plain, plain["input"], mend=mend))
        for _ in range(2):
            given: Any = decoded(body, BOUNDS)
            assert type(given["input"]) is SharedList
            assert told(outcome(given, given["input"], mend=mend)) == cold
        assert decoded(body, BOUNDS) == json.loads(body)


def test_random_requests_are_good_and_bad() -> None:
    found = []
    for seed in range(60):
        for items in conversations(seed):
            given = {"model": "m", "tools": TOOLS, "input": items}
            found.append(outcome(given, items, mend=False))
    assert sum(isinstance(each[0], ParsedRequest) for each in found) > 60
    assert len({each[0] for each in found if not isinstance(each[0], ParsedRequest)}) > 10


def test_what_is_made_of_an_item_is_kept_while_it_stays_in_its_place() -> None:
    def read(items: list[Any], *, mend: bool = False) -> tuple[Any, ...]:
        given: Any = decoded(json.dumps({"model": "m", "tools": TOOLS, "input": items}), BOUNDS)
        found = outcome(given, given["input"], mend=mend)[0]
        assert isinstance(found, ParsedRequest)
        return found.conversation.items

    items = [{"role": "user", "content": "Keep."}, *turn(3)]
    first, second = read(items), read([*items, *turn(6)])
    assert all(one is other for one, other in zip(first, second, strict=False))
    twice = read([*items, *items[1:]], mend=True)  # the same bytes again are another item
    assert len([each for each in twice if isinstance(each, CallOutput)]) == 2


def test_messages_of_anthropics_api_keep_their_items_and_say_the_same() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "sow", "input": {"row": 1}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "sown"}
    messages: list[Any] = [
        {"role": "user", "content": "Sow."},
        {"role": "assistant", "content": [{"type": "text", "text": "Well."}, use]},
        {"role": "user", "content": [result, {"type": "text", "text": "And?"}, {"type": "text", "text": "More."}]},
        {"role": "user", "content": "Go on."},
    ]
    tools = [{"name": "sow", "input_schema": {"type": "object"}}]

    def read(number: int, *, is_cold: bool = False) -> tuple[Any, ...]:
        body = json.dumps({"model": "m", "max_tokens": 9, "tools": tools, "messages": messages[:number]})
        given: Any = json.loads(body) if is_cold else decoded(body, BOUNDS)
        return read_messages(decode_messages(given), given, {}).asked.conversation.items

    for number in (1, 3, 4, 3, 4):
        first, second, cold = read(number), read(number), read(number, is_cold=True)
        assert first == second == cold
        calls = [(one, other) for one, other in zip(first, second, strict=True) if isinstance(one, Call | CallOutput)]
        assert all(one is other for one, other in calls)


def test_a_tool_keeps_the_spelling_of_its_request() -> None:
    plain = {"name": "sow", "input_schema": {"type": "object"}}
    marked = {**plain, "cache_control": {"type": "ephemeral"}}
    forget(caches())
    messages, servers = [{"role": "user", "content": "Sow again."}], dict[str, Any]()
    for tool in (marked, plain, marked, {**plain, "type": "custom"}):
        body = json.dumps({"model": "m", "max_tokens": 9, "tools": [tool], "messages": messages})
        given: Any = decoded(body, BOUNDS)
        offer = read_messages(decode_messages(given), given, servers).asked.offer
        assert offer is not None
        assert offer.client_tool("sow") == tool


@pytest.mark.parametrize("tools", [[], TOOLS[:2]], ids=["none", "some"])
def test_items_of_the_request_before_are_not_read_again(monkeypatch: pytest.MonkeyPatch, tools: list[Any]) -> None:
    starts: list[int] = []
    read = InputItemReader.read

    def noted(self: InputItemReader, items: Any, path: str, start: int = 0) -> None:
        starts.append(start)
        read(self, items, path, start)

    monkeypatch.setattr(InputItemReader, "read", noted)
    items = [{"role": "user", "content": f"Part {number} of {len(tools)}."} for number in range(6)]
    for number in (4, 6):
        body = json.dumps({"model": "m", "tools": tools, "input": items[:number]})
        given: Any = decoded(body, BOUNDS)
        request = decode_request(given)
        request.input = given["input"]
        read_request(request, given, [], servers={})
    assert starts == [0, 4, 4, 6]  # the second read of each request takes items that are new in any case: none here


def test_a_list_of_texts_or_tokens_is_not_taken_apart() -> None:
    for value in (["Moss."], [1, 2], [], "Moss.", None, [["a"]]):
        given: Any = decoded(json.dumps({"model": "m", "input": value, "tools": TOOLS}), BOUNDS)
        assert given["input"] == value


@pytest.mark.parametrize("kind", ["mcp", "\\u006dcp", "m\\u0063p", "mc\\u0070", "\\u006D\\u0063\\u0070"])
def test_items_and_tools_with_keys_are_not_kept(kind: str) -> None:
    tools = json.dumps([{"type": "KIND", "server_label": "s", "authorization": "secret-2"}]).replace("KIND", kind)
    body = f'{{"model": "m", "tools": {tools}, "input": [{{"type": "additional_tools", "tools": {tools}}}]}}'
    for part in (body, body.replace("tools", "others", 1)):
        given: Any = decoded(part, BOUNDS)
        assert given["input"][0]["tools"][0]["type"] == "mcp"
        assert type(given["input"]) is list
    given = decoded(f'{{"model": "m", "tools": {tools}}}', BOUNDS)
    assert type(given["tools"]) is list
