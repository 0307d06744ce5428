"""Conversations of agents that go on, with all kinds of messages and items, good ones and bad ones: request bodies of
each API that begin as earlier ones do, made from a seed.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from callwright.calls.web_search import SearchResult
from callwright.wire.responses.compaction import Summary, pack
from callwright.wire.sealed import sealed
from callwright.wire.searches import sealed_result, sealed_search

SCHEMA: Final = {"type": "object", "properties": {"row": {"type": "integer"}}}
FOUND: Final = SearchResult(3, "https://moss.example", "Moss", "Moss grows.")
IDS: Final = ("a", "b", "c", "d")
SWOLLEN: Final = sealed("so " * 4_000)

Pick = Callable[[Sequence[Any]], Any]

# --- what requests of each API hold ---

CHAT_TOOLS: Final[tuple[list[Any] | None, ...]] = (
    [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("sow", "weigh")],
    [
        {"type": "function", "function": {"name": "sow", "parameters": SCHEMA, "strict": False}},
        {"type": "custom", "custom": {"name": "hum"}},
    ],
    None,
)


def chat_message(pick: Pick) -> Any:
    text = {"type": "text", "text": pick(["Moss?", "", "Fern.\n"])}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    function = {"name": pick(["sow", "gone"]), "arguments": pick(["{}", '{"row": 1}', "{"])}
    call = {"id": pick(IDS), "type": "function", "function": function}
    custom = {"id": pick(IDS), "type": "custom", "custom": {"name": "hum", "input": "la"}}
    calls = pick([[call], [call, custom], [custom], [call, {**call, "id": pick(IDS)}], []])
    output = {"role": "tool", "tool_call_id": pick(IDS), "content": pick(["sown", "", [text], None])}
    said = {"role": "assistant", "content": pick([None, "Well.", [text], "<tool_call>"])}
    return pick(
        [
            *[output] * 4,
            *[{"role": "user", "content": pick(["Sow.", "", "<|end|>", [text, text], [text, image]])}] * 3,
            *[{**said, "tool_calls": calls, **pick([{}, {"reasoning_content": "Hm."}, {"reasoning": "Hm."}])}] * 3,
            {**said, **pick([{}, {"refusal": "No."}, {"name": "ann"}])},
            {"role": pick(["system", "developer"]), "content": pick(["Be kind.", [text], [image]])},
            pick([{"role": "function", "name": "sow", "content": "sown"}, {"role": "gnome"}, {"role": "user"}]),
        ]
    )


def chat_turn(pick: Pick, number: int) -> list[Any]:
    ids = [f"call_{number}_{one}" for one in range(pick([1, 1, 2]))]
    function = {"name": pick(["sow", "weigh"]), "arguments": f'{{"row": {pick([number, 0, 0])}}}'}
    calls = [{"id": id_, "type": "function", "function": function} for id_ in ids]
    said = {"role": "assistant", "content": pick([None, "So."]), **pick([{}, {"reasoning_content": "Hm."}])}
    outputs = [{"role": "tool", "tool_call_id": id_, "content": pick(["sown", "no"])} for id_ in ids]
    asked: list[Any] = [{"role": "user", "content": f"And row {number}?"}]
    return [{**said, "tool_calls": calls}, *outputs, *pick([asked, [], []])]


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


def bodies(api: str, seed: int) -> list[dict[str, Any]]:
    """The requests of one client. Now and then it has other tools, or other instructions."""
    random_ = random.Random(seed)
    found: list[dict[str, Any]] = []
    tools: Any = None
    offers, one, turn = _OF_API[api]
    system: Any = None
    for said in conversations(seed, one, turn, {"role": "user", "content": "Sow."}):
        tools = random_.choice(offers) if not (found and random_.randrange(5)) else tools
        body: dict[str, Any] = {"model": "m", "input" if api == "responses" else "messages": said, "tools": tools}
        if api == "messages":
            system = random_.choice(SYSTEMS) if not (found and random_.randrange(8)) else system
            body |= {"max_tokens": 9, "system": system}
        found.append(body)
    return found


_OF_API: Final = {
    "chat": (CHAT_TOOLS, chat_message, chat_turn),
    "responses": (RESPONSES_TOOLS, response_item, response_turn),
    "messages": (MESSAGES_TOOLS, message, messages_turn),
}
