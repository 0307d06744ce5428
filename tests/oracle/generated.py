"""Conversations as clients send them, generated: for oracles that run beside the tests."""

import json
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct

__all__ = ["ARGUMENTS", "Generated", "conversations", "texts"]

# Nothing that a tokenizer of SentencePiece shows in another way, and no half of a surrogate pair.
_CHARACTERS = st.sampled_from([*"abcXYZ019 \n\t\"'\\/<>&{}[]|.,:;#-_=", *"éßñ漢字渡し船🚢مرحبا\u200b"])
_WORDS = st.sampled_from(
    [
        *(
            "",
            " ",
            "  two blanks  ",
            "\nline\n",
            "ends in a blank ",
            "{}",
            "[1, 2",
            '{"a": 1, "b": [true, null]}',
            "12",
        ),
        *(
            "-0.5",
            "1e3",
            "null",
            '"quoted"',
            "12 °C",
            "<b>bold</b> & more",
            "[INST] no token [/INST]",
            "Fähre 渡し船 🚢",
        ),
        *(
            '{"a":  "\\u00e9"}',
            "NaN",
            "Infinity",
            "</s>",
            "<tool_call>",
            "a\r\nb",
            '{"content": "x"}\n{"content": "y"}',
        ),
    ]
)
texts = st.one_of(_WORDS, st.text(_CHARACTERS, max_size=12))
_SPOKEN = texts.filter(bool)
_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**12), 10**12), st.sampled_from([0.5, -2.25, 1e-7, 3.0]), texts
)
_KEYS = st.one_of(st.sampled_from(["city", "days", "größe", "a b", 'q"']), st.text(_CHARACTERS, min_size=1, max_size=5))
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3), max_leaves=6
)
ARGUMENTS = st.dictionaries(_KEYS, _VALUES, max_size=4)
_NAMES = ("get_weather", "find-ferry", "f")
_IDS = (
    *("abcdefghi", "A1b2C3d4E", "call00001", "000000000"),
    *("call_1", "toolu_01AbC", "functions.f:0", "call-0001", "é"),
)
_TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": 'The "weather" <here> & there: Fähre 渡し船.\nTwo lines.',
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Where"},
                    "days": {"type": ["integer", "null"], "minimum": 0, "default": 1.5},
                    "exact": {"type": "boolean"},
                    "units": {"anyOf": [{"type": "string", "enum": ["°C", "°F"]}, {"type": "null"}]},
                },
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    },
    {"type": "function", "function": {"name": "find-ferry", "description": "", "parameters": {}}},
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}, "strict": True}},
]


class Generated(Struct, frozen=True):
    """Messages and tools in the Chat shape."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None

    @property
    def is_late(self) -> bool:
        """Whether a system message stands behind the user's first."""
        roles = [message["role"] for message in self.messages]
        return "system" in roles[roles.index("user") :]


@st.composite
def conversations(draw: st.DrawFn, *, beside_calls: bool, parts: bool = True) -> Generated:
    """Conversations in an order that vendors take. `beside_calls`: text may stand beside calls; `parts`: contents may
    be lists of texts.
    """

    def content(words: st.SearchStrategy[str]) -> Any:
        if parts and draw(st.integers(0, 5)) == 0:
            return [{"type": "text", "text": draw(words.filter(bool))} for _ in range(draw(st.integers(1, 3)))]
        return draw(words)

    messages = [{"role": "system", "content": content(texts)} for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2])))]
    unused = draw(st.permutations([*_IDS, *[f"id{number:07}" for number in range(20)]]))
    for _ in range(draw(st.integers(1, 3))):
        messages += [{"role": "user", "content": content(texts)} for _ in range(draw(st.sampled_from([1, 1, 1, 2])))]
        if draw(st.integers(0, 7)) == 0:
            messages.append({"role": "system", "content": content(texts)})
            messages.append({"role": "user", "content": content(texts)})
        for _ in range(draw(st.integers(0, 2))):
            calls = [
                (unused.pop(), draw(st.sampled_from(_NAMES)), draw(ARGUMENTS)) for _ in range(draw(st.integers(1, 3)))
            ]
            dumped = _compact if draw(st.booleans()) else json.dumps
            made = [
                {"id": id_, "type": "function", "function": {"name": name, "arguments": dumped(arguments)}}
                for id_, name, arguments in calls
            ]
            said = content(_SPOKEN) if beside_calls and draw(st.booleans()) else draw(st.sampled_from([None, ""]))
            messages.append({"role": "assistant", "content": said, **_reasoned(draw), "tool_calls": made})
            for id_, _, _ in calls:  # results out of order are put in that of the calls before any format
                messages.append({"role": "tool", "tool_call_id": id_, "content": content(texts)})
        if draw(st.booleans()):
            messages.append({"role": "assistant", "content": content(_SPOKEN), **_reasoned(draw)})
            messages.append({"role": "user", "content": content(texts)})
    tools = draw(st.sampled_from([None, _TOOLS[:1], _TOOLS[1:], _TOOLS]))
    return Generated(messages, tools)


def _reasoned(draw: st.DrawFn) -> dict[str, str]:
    return {"reasoning_content": draw(_SPOKEN)} if draw(st.integers(0, 2)) == 0 else {}


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
