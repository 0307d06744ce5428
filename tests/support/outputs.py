"""What models write, as the scripted model server plays it, and the tools they call."""

from collections.abc import Mapping
from typing import Any, Final, cast

from tests.support.servers import Answer, Flavour, call_deltas, chat, completion, said

TOOLS: Final[list[dict[str, Any]]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather in a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "kelvin"]}},
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "send_mail",
            "description": "Sends a mail.",
            "parameters": {
                "type": "object",
                "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
                "required": ["to", "text"],
            },
        },
    },
]
QUESTION: Final = {"role": "user", "content": "What is the weather in Paris?"}
ARGUMENTS: Final = '{"city": "Paris"}'
THOUGHT: Final = "The user wants the weather in Paris."
TEXT: Final = "It is 18 °C and sunny in Paris."
CALL: Final = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}
# Asked, called, answered by the tool: the messages of a second turn.
HISTORY: Final[list[dict[str, Any]]] = [
    QUESTION,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "18 °C, sunny"},
]


def block(name: str, arguments: str) -> str:
    """A call as Qwen and Hermes models write it."""
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


# By dialect: a reasoned call, a text, a text before a call, two calls at once, and a call begun and cut off.
# gpt-oss stops behind each call, so of two only the first comes.
WRITTEN: Final[Mapping[str, Mapping[str, str]]] = {
    "harmony": {
        "call": f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>commentary "
        f"to=functions.get_weather <|constrain|>json<|message|>{ARGUMENTS}<|call|>",
        "text": f"<|channel|>final<|message|>{TEXT}<|return|>",
        "text_and_call": "<|channel|>commentary<|message|>One moment.<|end|><|start|>assistant<|channel|>commentary "
        f"to=functions.get_weather <|constrain|>json<|message|>{ARGUMENTS}<|call|>",
        "cut_text": "<|channel|>final<|message|>It is 18",
        "cut_call": '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Pa',
    },
    "hermes": {
        "call": f"<think>\n{THOUGHT}\n</think>\n\n{block('get_weather', ARGUMENTS)}<|im_end|>",
        "text": f"{TEXT}<|im_end|>",
        "text_and_call": f"One moment.\n{block('get_weather', ARGUMENTS)}<|im_end|>",
        "two_calls": block("get_weather", ARGUMENTS) + "\n" + block("get_weather", '{"city": "Rome"}') + "<|im_end|>",
        "cut_text": "It is 18",
        "cut_call": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Pa',
    },
    "json": {
        "call": f'<think>\n{THOUGHT}\n</think>\n\n```json\n{{"tool": "get_weather", "arguments": {ARGUMENTS}}}\n```',
        "text": TEXT,
        "text_and_call": f'One moment.\n\n```json\n{{"tool": "get_weather", "arguments": {ARGUMENTS}}}\n```',
        "two_calls": f'```json\n{{"tool": "get_weather", "arguments": {ARGUMENTS}}}\n```\n'
        '```json\n{"tool": "get_weather", "arguments": {"city": "Rome"}}\n```',
        "cut_text": "It is 18",
        "cut_call": '```json\n{"tool": "get_weather", "arguments": {"city": "Pa',
    },
}
_ENDS: Final = ("<|call|>", "<|return|>", "<|im_end|>")
_NATIVE: Final[Mapping[str, Answer]] = {
    "call": chat(
        {"reasoning_content": THOUGHT[:9]},
        {"reasoning_content": THOUGHT[9:]},
        *call_deltas("get_weather", ARGUMENTS[:4], ARGUMENTS[4:]),
        finish="tool_calls",
    ),
    "text": said(TEXT[:8], TEXT[8:]),
    "text_and_call": chat({"content": "One moment."}, *call_deltas("get_weather", ARGUMENTS), finish="tool_calls"),
    "two_calls": chat(
        *call_deltas("get_weather", ARGUMENTS),
        *call_deltas("get_weather", '{"city": "Rome"}', index=1, id_="call_up_1"),
        finish="tool_calls",
    ),
    "cut_text": said("It is", " 18", finish="length"),
    "cut_call": chat(*call_deltas("get_weather", '{"city":', ' "Pa'), finish="length"),
}


def played(way: str, what: str) -> Answer:
    """An answer of the scripted server to a gateway that asks it in this way (`tests.conftest.scripted_models`)."""
    mode, _, rest = way.partition("-")
    if mode == "native":
        return _NATIVE[what]
    dialect, _, server = rest.partition("-")
    return spoken(way, WRITTEN[dialect][what], finish="length" if what.startswith("cut") else "stop", server=server)


def spoken(way: str, text: str, *, finish: str = "stop", server: str = "") -> Answer:
    """A text that the model writes, in the answer of the server that the gateway asks in this way."""
    if way.startswith("raw"):
        flavour = cast(Flavour, server or way.rpartition("-")[2])
        if flavour == "openai":  # knows no way to keep the token at which it stopped
            for end in _ENDS:
                text = text.removesuffix(end)
        return completion(text, flavour, finish=finish)
    return said(*(text[at : at + 6] for at in range(0, len(text), 6)), finish=finish)


WAYS: Final = (
    "native",
    "prompt-json",
    "prompt-hermes",
    "prompt-harmony",
    *(f"raw-{dialect}-{server}" for dialect in ("harmony", "hermes") for server in ("openai", "vllm", "sglang")),
    *("raw-harmony-llamacpp", "raw-hermes-llamacpp", "raw-json-vllm"),
)
FEW_WAYS: Final = ("native", "prompt-json", "raw-hermes-vllm", "raw-harmony-vllm")
