"""The fields in which servers take a constraint, and the endpoints that take them, as data.

A server that does not know a field mostly ignores it with 200. So each is asked to hold the answer to a text that
no model would write, while the prompt asks for something else. Sources: the request schemas of vLLM 0.33,
SGLang 0.5.23, llama.cpp b11549, Ollama 0.33, TensorRT-LLM and TGI 3.3.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from callwright.doctor.findings import ServerName, Status

PROMPT: Final = "Write the word banana three times."
TARGET: Final = "ok-7f3"
_JSON_TARGET: Final = {"code": TARGET}
# From this on a cut answer is no accident.
_ENOUGH: Final = 6

Fields: TypeAlias = Mapping[str, Any]


class Endpoint(Struct, frozen=True):
    """A path that generates. `in_v1`: below the base URL, else below the server's root. `text`: the answer's place."""

    name: str
    path: str
    in_v1: bool
    body: Callable[[str, int, Fields], dict[str, Any]]
    text: tuple[str | int, ...]
    reasoning: tuple[tuple[str | int, ...], ...] = ()


class RequestField(Struct, frozen=True):
    """A constraint as one server takes it."""

    server: ServerName
    endpoint: str
    name: str
    fields: Fields

    @property
    def probe(self) -> str:
        """How its result is called."""
        return f"{self.endpoint}: {self.name}"


def _messages() -> list[dict[str, str]]:
    return [{"role": "user", "content": PROMPT}]


ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    endpoint.name: endpoint
    for endpoint in (
        Endpoint(
            "chat",
            "/chat/completions",
            True,
            lambda model, limit, fields: {
                "model": model,
                "messages": _messages(),
                "max_tokens": limit,
                "temperature": 0,
                **fields,
            },
            ("choices", 0, "message", "content"),
            (("choices", 0, "message", "reasoning_content"), ("choices", 0, "message", "reasoning")),
        ),
        Endpoint(
            "completions",
            "/completions",
            True,
            lambda model, limit, fields: {
                "model": model,
                "prompt": PROMPT,
                "max_tokens": limit,
                "temperature": 0,
                **fields,
            },
            ("choices", 0, "text"),
        ),
        Endpoint(
            "/completion",
            "/completion",
            False,
            lambda model, limit, fields: {"prompt": PROMPT, "n_predict": limit, "temperature": 0, **fields},
            ("content",),
        ),
        Endpoint(
            "SGLang's /generate",
            "/generate",
            False,
            lambda model, limit, fields: {
                "text": PROMPT,
                "sampling_params": {"max_new_tokens": limit, "temperature": 0, **fields},
            },
            ("text",),
        ),
        Endpoint(
            "TGI's /generate",
            "/generate",
            False,
            lambda model, limit, fields: {"inputs": PROMPT, "parameters": {"max_new_tokens": limit, **fields}},
            ("generated_text",),
        ),
        Endpoint(
            "/api/chat",
            "/api/chat",
            False,
            lambda model, limit, fields: {
                "model": model,
                "messages": _messages(),
                "stream": False,
                "options": {"num_predict": limit, "temperature": 0},
                **fields,
            },
            ("message", "content"),
            (("message", "thinking"),),
        ),
    )
}

_SCHEMA: Final = {
    "type": "object",
    "properties": {"code": {"type": "string", "enum": [TARGET]}},
    "required": ["code"],
    "additionalProperties": False,
}
_GBNF: Final = f'root ::= "{TARGET}"'
_LARK: Final = f'%llguidance {{}}\nstart: "{TARGET}"'
_TAG: Final = {"type": "structural_tag", "format": {"type": "const_string", "value": TARGET}}
_JSON_SCHEMA: Final = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "probe", "strict": True, "schema": _SCHEMA}}
}
_RESPONSE_JSON: Final = "response_format json_schema"
_RESPONSE_TAG: Final = "response_format structural_tag"
_VLLM: Final[Mapping[str, Fields]] = {
    "structured_outputs regex": {"structured_outputs": {"regex": TARGET}},
    "structured_outputs json": {"structured_outputs": {"json": _SCHEMA}},
    "structured_outputs choice": {"structured_outputs": {"choice": [TARGET]}},
    "structured_outputs grammar": {"structured_outputs": {"grammar": _GBNF}},
    "structured_outputs structural_tag": {"structured_outputs": {"structural_tag": json.dumps(_TAG)}},
    _RESPONSE_JSON: _JSON_SCHEMA,
    "guided_regex": {"guided_regex": TARGET},
}
_SGLANG: Final[Mapping[str, Fields]] = {
    "regex": {"regex": TARGET},
    "ebnf": {"ebnf": _GBNF},
    _RESPONSE_JSON: _JSON_SCHEMA,
    _RESPONSE_TAG: {"response_format": _TAG},
}
_SGLANG_OWN: Final[Mapping[str, Fields]] = {
    "regex": {"regex": TARGET},
    "ebnf": {"ebnf": _GBNF},
    "json_schema": {"json_schema": json.dumps(_SCHEMA)},
    "structural_tag": {"structural_tag": json.dumps(_TAG)},
}
_LLAMACPP: Final[Mapping[str, Fields]] = {
    "grammar": {"grammar": _GBNF},
    "json_schema": {"json_schema": _SCHEMA},
    _RESPONSE_JSON: _JSON_SCHEMA,
}
_LLAMACPP_OWN: Final[Mapping[str, Fields]] = {
    "grammar": {"grammar": _GBNF},
    "grammar in Lark": {"grammar": _LARK},
    "json_schema": {"json_schema": _SCHEMA},
}
_TGI_OWN: Final[Mapping[str, Fields]] = {
    "grammar json": {"grammar": {"type": "json", "value": _SCHEMA}},
    "grammar regex": {"grammar": {"type": "regex", "value": TARGET}},
}
# What LM Studio, TensorRT-LLM or a proxy before another server may take.
_UNKNOWN: Final[Mapping[str, Fields]] = {
    _RESPONSE_JSON: _JSON_SCHEMA,
    "response_format json": {"response_format": {"type": "json", "schema": _SCHEMA}},
    "response_format regex": {"response_format": {"type": "regex", "regex": TARGET}},
    "response_format ebnf": {"response_format": {"type": "ebnf", "ebnf": _GBNF}},
    _RESPONSE_TAG: {"response_format": _TAG},
    "structured_outputs regex": {"structured_outputs": {"regex": TARGET}},
    "regex": {"regex": TARGET},
    "grammar": {"grammar": _GBNF},
}


def _rows(server: ServerName, fields: Mapping[str, Fields], *endpoints: str) -> list[RequestField]:
    return [RequestField(server, endpoint, name, given) for endpoint in endpoints for name, given in fields.items()]


FIELDS: Final[tuple[RequestField, ...]] = (
    *_rows("vllm", _VLLM, "chat", "completions"),
    *_rows("sglang", _SGLANG, "chat", "completions"),
    *_rows("sglang", _SGLANG_OWN, "SGLang's /generate"),
    *_rows("llamacpp", _LLAMACPP, "chat", "completions"),
    *_rows("llamacpp", _LLAMACPP_OWN, "/completion"),
    *_rows("ollama", {"format": {"format": _SCHEMA}}, "/api/chat"),
    *_rows("ollama", {_RESPONSE_JSON: _JSON_SCHEMA}, "chat"),
    *_rows("tgi", _TGI_OWN, "TGI's /generate"),
    *_rows("tgi", {_RESPONSE_JSON: _JSON_SCHEMA}, "chat"),
    *_rows("transformers", {_RESPONSE_JSON: _JSON_SCHEMA}, "chat"),
    *_rows("callwright", {_RESPONSE_JSON: _JSON_SCHEMA}, "chat"),
    *_rows("unknown", _UNKNOWN, "chat"),
    *_rows("unknown", {_RESPONSE_JSON: _JSON_SCHEMA}, "completions"),
)
# The fields that grammars are sent in in mode raw, by server.
RAW_FIELDS: Final[Mapping[ServerName, str]] = {
    "vllm": "completions: structured_outputs structural_tag",
    "sglang": f"completions: {_RESPONSE_TAG}",
    "llamacpp": "/completion: grammar",
}
# And over chat: in the dialect's own format, or as a schema of plain JSON calls.
CHAT_FIELDS: Final[Mapping[ServerName, str]] = {
    "vllm": "chat: structured_outputs structural_tag",
    "sglang": f"chat: {_RESPONSE_TAG}",
}
CHAT_SCHEMA: Final = f"chat: {_RESPONSE_JSON}"
LLGUIDANCE: Final = "/completion: grammar in Lark"


def judge(answer: str) -> Status:
    """Whether an answer obeys the constraints: it is the text, or the object, with blanks or cut at its limit. A weak
    model may write blanks up to the limit after a brace, which proves nothing.
    """
    squeezed = re.sub(r"\s", "", answer)
    whole = json.dumps(_JSON_TARGET, separators=(",", ":"))
    if answer.strip() == TARGET or (len(squeezed) >= _ENOUGH and whole.startswith(squeezed)):
        return "enforced"
    return "unclear" if squeezed and whole.startswith(squeezed) else "ignored"
