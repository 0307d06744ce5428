"""Requests of agents, each with what the one before held and some more: they are read as if none had come before."""

import json
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import callwright
from callwright.bounds import Bounds
from callwright.calls.web_search import SearchResult
from callwright.errors import RequestError
from callwright.gateway.responses.given_items import to_be_read
from callwright.known_values import KnownList
from callwright.openai_format.tool_catalog import ToolCatalog
from callwright.tolerant_json.codec import decode
from callwright.wire.anthropic.blocks import MessageReader
from callwright.wire.anthropic.request import decode_request as decode_messages
from callwright.wire.anthropic.request import read_request as read_messages
from callwright.wire.body import decoded
from callwright.wire.responses.compaction import Summary, pack
from callwright.wire.responses.input_items import InputItemReader
from callwright.wire.responses.request import decode_request, read_request
from callwright.wire.sealed import sealed
from callwright.wire.searches import sealed_result, sealed_search

SOURCES: Final = str(Path(callwright.__file__).parent)
BOUNDS: Final = Bounds()
SCHEMA: Final = {"type": "object", "properties": {"row": {"type": "integer"}}}
FOUND: Final = SearchResult(3, "https://moss.example", "Moss", "Moss grows.")
IDS: Final = ("a", "b", "c", "d")
SWOLLEN: Final = sealed("so " * 4_000)
OFFER: Final = ToolCatalog()
CATALOG: Final = ToolCatalog(checks=False)

Pick = Callable[[Sequence[Any]], Any]

# --- what requests of each API hold ---

RESPONSES_TOOLS: Final[tuple[list[Any] | None, ...]] = (
    [
        {"type": "function", "name": "sow", "parameters": SCHEMA},
        {"type": "function", "name": "weigh", "output_schema": {"type": "object", "required": ["kg"]}},
        {"type": "custom", "name": "hum"},
        {"type": "namespace", "name": "shed", "tools": [{"type": "function", "name": "rake"}]},
    ],
    [
        {"type": "function", "name": "sow", "parameters": SCHEMA, "async": True},
        {"type": "function", "name": "late", "defer_loading": True},
        {"type": "tool_search"},
        {"type": "web_search"},
        {"type": "local_shell"},
    ],
    None,
)


def response_item(pick: Pick) -> Any:
    id_ = pick(IDS)
    own = pick([{}, {}, {}, {"id": pick(["i1", "i2", ""])}])
    return own | pick(
        [
            {"role": pick(["user", "assistant", "developer"]), "content": pick(["", "Moss.", [], "Fern."])},
            {"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]},
            *[
                {"type": "function_call", "call_id": id_, "name": name, "arguments": pick(["{}", "{"])}
                for name in ("sow", "weigh", "late", "nobody")
            ],
            {"type": "function_call", "call_id": id_, "name": "sow", "arguments": "{", "status": "incomplete"},
            {"type": "function_call", "call_id": id_, "name": "rake", "namespace": "shed", "arguments": "{}"},
            {"type": "function_call", "call_id": id_, "name": "sow", "arguments": "{}", "async": True},
            *[{"type": "function_call_output", "call_id": id_, "output": pick(["{}", "Done.", [], ""])}] * 6,
            {"type": "function_call_output", "name": "weigh", "output": "By itself."},
            {"type": "custom_tool_call", "call_id": id_, "name": "hum", "input": "la"},
            {"type": "custom_tool_call_output", "call_id": id_, "output": "hm"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Rain?"}]},
            {"type": "reasoning", "summary": [], "encrypted_content": pick([sealed("Hm."), SWOLLEN, "theirs"])},
            pick(
                [
                    {"type": "tool_search_call", "arguments": {"query": "late"}},
                    {"type": "tool_search_output", "tools": [{"type": "function", "name": "late"}]},
                    {"type": "additional_tools", "tools": [{"type": "function", "name": pick(["more", "weigh"])}]},
                    {"type": "compaction", "encrypted_content": pack(Summary("Sown.", pick([True, False])))},
                    {"type": "compaction_trigger"},
                    {"type": "configuration_update", "reasoning": {"effort": "low"}},
                    {"type": "local_shell_call", "call_id": id_, "action": {"command": ["ls"]}},
                    {"type": "local_shell_call_output", "id": id_, "output": "moss"},
                    {"type": "mcp_approval_request", "id": id_, "name": "dig", "server_label": "s"},
                    {"type": "mcp_approval_response", "approval_request_id": id_, "approve": pick([True, False])},
                    {"type": "mcp_call", "id": "m", "name": "dig", "server_label": "s", "output": "dug"},
                    {
                        "type": "web_search_call",
                        "action": {"query": "?"},
                        "encrypted_content": sealed_search("", [FOUND]),
                    },
                    {"type": "mcp_list_tools", "server_label": "s", "tools": []},
                    {"type": "file_search_call"},
                    {"type": "item_reference", "id": "x"},
                    {"type": "riddle"},
                    {"role": "gnome", "content": ""},
                ]
            ),
        ]
    )


def response_turn(pick: Pick, number: int) -> list[Any]:
    """What is good: a call or two, and their outputs."""
    ids = [f"call_{number}_{one}" for one in range(pick([1, 1, 2]))]
    thought = [{"type": "reasoning", "summary": [], "encrypted_content": sealed(f"Row {number}.")}]
    calls = [{"type": "function_call", "call_id": id_, "name": "weigh", "arguments": "{}"} for id_ in ids]
    outputs = [{"type": "function_call_output", "call_id": id_, "output": pick(["{}", "no"])} for id_ in ids]
    return [*pick([thought, []]), *calls, *pick([outputs, outputs[::-1]])]


MESSAGES_TOOLS: Final[tuple[list[Any] | None, ...]] = (
    [{"name": "sow", "input_schema": SCHEMA}, {"name": "hum", "input_schema": {"type": "object"}}],
    [
        {"name": "sow", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}},
        {"name": "late", "input_schema": SCHEMA, "defer_loading": True},
        {"name": "later", "input_schema": SCHEMA, "defer_loading": True},
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
    None,
)
SYSTEMS: Final[tuple[Any, ...]] = ("Be kind.", [{"type": "text", "text": "Be brief."}], None)


def user_block(pick: Pick) -> Any:
    found = {"type": "tool_reference", "tool_name": pick(["late", "later", "gone"])}
    text = {"type": "text", "text": pick(["Moss?", "", " ", "Fern.\n"])}
    image = {"type": "image", "source": {"type": "url", "url": "https://a.example/a.png"}}
    content = pick([None, "sown", "", [text, text], [found, found, text], [image, text], [{"type": "odd"}]])
    result = {"type": "tool_result", "tool_use_id": pick(IDS), "content": content, "is_error": pick([True, False])}
    return pick(
        [
            *[result] * 4,
            *[text] * 3,
            image,
            {"type": "document", "source": {"type": "text", "data": "Leaf."}, "title": "Leaves"},
            {"type": "search_result", "title": "Fern", "source": "b", "content": [text]},
            pick([{"type": "odd"}, {"type": "tool_result"}, found]),
        ]
    )


def assistant_block(pick: Pick) -> Any:
    text = {"type": "text", "text": pick(["Well.", "", "So.\n"])}
    use = {"type": "tool_use", "id": pick(IDS), "name": pick(["sow", "late", "gone"]), "input": {"row": pick([1, 2])}}
    return pick(
        [
            *[use] * 4,
            *[text] * 2,
            {"type": "thinking", "thinking": pick(["Hm.", ""]), "signature": pick([sealed("Hm."), "", SWOLLEN, "x"])},
            pick(
                [
                    {"type": "server_tool_use", "id": pick(IDS), "name": "tool_search_tool_bm25", "input": {}},
                    {"type": "server_tool_use", "id": pick(IDS), "name": "web_search", "input": {"query": "?"}},
                    {
                        "type": "web_search_tool_result",
                        "tool_use_id": pick(IDS),
                        "content": [
                            {
                                "url": "https://c.example",
                                "title": "C",
                                "encrypted_content": pick(["", sealed_result(FOUND)]),
                            }
                        ],
                    },
                    {
                        "type": "tool_search_tool_result",
                        "tool_use_id": pick(IDS),
                        "content": {"tool_references": [{"tool_name": pick(["late", "later"])}]},
                    },
                    {"type": "mcp_tool_use", "id": pick(IDS), "name": "dig", "server_name": "s", "input": {}},
                    {"type": "mcp_tool_result", "tool_use_id": pick(IDS), "content": "dug"},
                    {"type": "compaction", "content": "Sown."},
                    {"type": "odd"},
                    {"type": 1},
                ]
            ),
        ]
    )


def message(pick: Pick) -> Any:
    role = pick(["user", "user", "assistant", "assistant", "assistant", "user", "user", "assistant", "system"])
    if role == "system":
        defined = {"type": "tool_definition", "definition": {"name": "new", "input_schema": SCHEMA}}
        named = {"type": "tool_reference", "name": pick(["late", "sow"])}
        block = pick(
            [
                *[{"type": "text", "text": "A note."}] * 3,
                {"type": "tool_addition", "tool": pick([defined, named])},
                {"type": "tool_removal", "tool": named},
            ]
        )
        passing = pick([{}, {"clear_at": "next_user_message"}])
        return {"role": role, "content": [block], **passing}
    block = user_block if role == "user" else assistant_block
    content = [block(pick) for _ in range(pick([1, 1, 2, 3]))]
    return {"role": role, "content": pick([content, content, content, "Words."])}


def messages_turn(pick: Pick, number: int) -> list[Any]:
    ids = [f"call_{number}_{one}" for one in range(pick([1, 1, 2]))]
    uses = [{"type": "tool_use", "id": id_, "name": pick(["sow", "late"]), "input": {"row": number}} for id_ in ids]
    results: list[Any] = [{"type": "tool_result", "tool_use_id": id_, "content": "sown"} for id_ in ids]
    notes = [{"type": "text", "text": text} for text in ("A note.", "Another.")[: pick([0, 0, 1, 2])]]
    return [{"role": "assistant", "content": uses}, {"role": "user", "content": results + notes}]


# --- requests that go on ---


def conversations(
    seed: int, one: Callable[[Pick], Any], turn: Callable[[Pick, int], list[Any]], begin: Any
) -> list[list[Any]]:
    """Of one client: each goes on from an earlier one, at times with something in it changed, or taken out."""
    random_ = random.Random(seed)
    pick = random_.choice
    known: list[list[Any]] = [[begin]]
    is_wild = seed % 2 == 0
    for number in range(14):
        items = known[-1] if random_.randrange(6) else pick(known)
        if len(items) > 1 and not random_.randrange(8):
            at = random_.randrange(1, len(items))
            items = [*items[:at], *pick([[one(pick)], []]), *items[at + 1 :]]
        wild = is_wild and random_.randrange(3) == 0
        more = [one(pick)] if wild else turn(pick, number)
        if not random_.randrange(4):  # the first of them come alone
            known.append([*items, *more[:1]])
        known.append([*items, *more])
    return known


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


def bodies(api: str, seed: int) -> list[dict[str, Any]]:
    random_ = random.Random(seed)
    found: list[dict[str, Any]] = []
    tools: Any = None
    if api == "responses":
        for items in conversations(seed, response_item, response_turn, {"role": "user", "content": "Sow."}):
            tools = random_.choice(RESPONSES_TOOLS) if not (found and random_.randrange(5)) else tools
            found.append({"model": "m", "input": items, "tools": tools})
        return found
    system: Any = None
    for messages in conversations(seed, message, messages_turn, {"role": "user", "content": "Sow."}):
        tools = random_.choice(MESSAGES_TOOLS) if not (found and random_.randrange(5)) else tools
        system = random_.choice(SYSTEMS) if not (found and random_.randrange(8)) else system
        found.append({"model": "m", "max_tokens": 9, "messages": messages, "tools": tools, "system": system})
    return found


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
        assert type(values) is KnownList
        kept = [*values.kept.values(), *[made for value in values for made in value.kept.values()]]
        assert not any("so so so" in repr(made) for made in kept)


def test_what_there_is_room_for_counts_what_came_before() -> None:
    texts = [f"{number:x} " * 60 for number in range(3)]
    items = [{"type": "reasoning", "summary": [], "encrypted_content": sealed(text)} for text in texts]
    for number in (1, 2, 3, 3):
        given: Any = decoded(json.dumps({"model": "m", "input": items[:number]}), BOUNDS)
        reader = InputItemReader(OFFER)
        reader.read(given["input"], "input", given=given["input"])
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
            reader = MessageReader(CATALOG)
            reader.read(decode_messages(given).messages, given["messages"])
            left.append((reader._sealed.left, reader._unsealer.left, reader.sources, reader.found))
        assert left[0] == left[1]
