"""What one request can do, or an answer that a client has a model write: little to send, and much to work out."""

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from loading import HOST, sse

from .attack import Attack, Cost, Target

__all__ = ["ATTACKS"]

_CHAT: Final = "/v1/chat/completions"
_EMBEDDINGS: Final = "/v1/embeddings"
_PATIENCE_S: Final = 120.0
_TIMES: Final = 3
_PIECE: Final = 4_000  # characters of an answer that come at once
_QUESTION: Final = {"role": "user", "content": "Please call the tool."}


# --- what is sent ---


def _tool(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "additionalProperties": False}
    return {"type": "function", "function": {"name": "f", "parameters": {**parameters, **more}}}


def _declared(count: int, name: str = "k") -> dict[str, Any]:
    return {f"{name}{number}": {"type": "string"} for number in range(count)}


def _strict(count: int) -> dict[str, Any]:
    tool = _tool(_declared(count), required=list(_declared(count)))
    tool["function"]["strict"] = True
    return {"messages": [_QUESTION], "tools": [tool]}


def _parts(count: int) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * count}]}


def _tokens(count: int) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "<|im_end|>" * count}]}


def _history(count: int) -> dict[str, Any]:
    """Calls, and their outputs from the last to the first."""
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": f"c{number}", "type": "function", "function": function} for number in range(count)]
    outputs = [{"role": "tool", "tool_call_id": f"c{number}", "content": "ok"} for number in reversed(range(count))]
    asked = {"role": "assistant", "content": None, "tool_calls": calls}
    return {"messages": [_QUESTION, asked, *outputs], "tools": [_tool(_declared(1))]}


def _messages(count: int) -> dict[str, Any]:
    return {"messages": [_QUESTION, {"role": "assistant", "content": "Why?"}] * (count // 2)}


def _custom(definition: str) -> dict[str, Any]:
    grammar = {"type": "grammar", "grammar": {"syntax": "regex", "definition": definition}}
    tool = {"type": "custom", "custom": {"name": "f", "format": grammar}}
    return {"messages": [_QUESTION], "tools": [tool], "tool_choice": "required"}


def _listed(count: int) -> dict[str, Any]:
    return {"messages": [_QUESTION], "tools": [_tool({"k": {"enum": [f"v{number}" for number in range(count)]}})]}


def _numbers(count: int) -> dict[str, Any]:
    return {"messages": [_QUESTION], "more": [1.5] * count}


def _asking(body: Callable[[], dict[str, Any]], path: str = _CHAT) -> Callable[[Target], Cost]:
    """Send it some times, one behind the other; what others notice is measured beside that."""

    def run(target: Target) -> Cost:
        data = json.dumps({"model": "attacked", **body()}, separators=(",", ":")).encode()
        statuses: Counter[str] = Counter()
        began = time.perf_counter()
        for _ in range(_TIMES):
            connection = http.client.HTTPConnection(HOST, target.port, timeout=_PATIENCE_S)
            try:
                connection.request("POST", path, data, {"content-type": "application/json"})
                reply = connection.getresponse()
                reply.read()
                statuses[str(reply.status)] += 1
            except OSError as error:
                statuses[type(error).__name__] += 1
            finally:
                connection.close()
        told = ", ".join(f"{number} × {status}" for status, number in statuses.items())
        return Cost(0, 0, 0, f"{told} in {time.perf_counter() - began:.1f} s, {len(data) / 1e6:.1f} MB each")

    return run


# --- what a model writes ---


def _call(count: int, name: str = "k", end: str = "\n</parameter>") -> str:
    parameters = "".join(f"<parameter={name}{number}>\nv{number}{end}\n" for number in range(count))
    return f"<tool_call>\n<function=f>\n{parameters}</function>\n</tool_call>"


def _model(text: str) -> tuple[int, Callable[[], None]]:
    """A completion endpoint that always writes this."""
    pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
    choices = [{"index": 0, "text": piece, "finish_reason": None} for piece in pieces]
    ending = {"index": 0, "text": "", "finish_reason": "stop"}
    answer = b"".join(sse(*({"choices": [choice]} for choice in (*choices, ending)), "[DONE]"))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    def end() -> None:
        server.shutdown()
        thread.join()
        server.server_close()

    return server.server_address[1], end


def _toml(dialect: str, upstream: str = "{upstream}", **more: str) -> str:
    lines = {"name": "attacked", "upstream": upstream, "mode": "raw", "dialect": dialect, "retries": "0", **more}
    written = (f"{name} = {value}" if value.isdecimal() else f'{name} = "{value}"' for name, value in lines.items())
    return "\n".join(("[[models]]", *written, ""))


_WRITES: Final[dict[str, Callable[[], str]]] = {
    "fine": lambda: "Fine.",
    "many parameters": partial(_call, 19_000),
    "unknown parameters": partial(_call, 1_900, "q"),
    "lost closers": partial(_call, 19_000, "k", ""),
    "braces": lambda: "{" * 200_000,
}


def _writing(what: str) -> Callable[[], tuple[int, Callable[[], None]]]:
    return lambda: _model(_WRITES[what]())


# Nobody waits for long: what a busy machine of two cores adds is in it. A body of 8 MB is there several times at once.
_HOLDS: Final = Cost(900, 150, 0, "")
_LONG: Final = Cost(900, 400, 0, "")
_HERMES: Final = _toml("hermes")
_QWEN: Final = _toml("qwen3_coder")
_SIMULATED: Final = _toml("harmony", "simulated")


def _called(properties: int) -> dict[str, Any]:
    return {"messages": [_QUESTION], "tools": [_tool(_declared(properties))]}


ATTACKS: Final = [
    Attack("a strict schema", "of 19,000 properties", _asking(partial(_strict, 19_000)), _HOLDS),
    Attack(
        "many properties",
        "4,900 of a call that is demanded",
        _asking(lambda: {**_strict(4_900), "tool_choice": "required"}),
        _HOLDS,
        _HERMES,
        _writing("fine"),
    ),
    Attack("values of a schema", "an enum of 200,000", _asking(partial(_listed, 200_000)), _HOLDS, _SIMULATED),
    Attack("numbers", "3,900,000 in one field", _asking(partial(_numbers, 3_900_000)), _HOLDS, _SIMULATED),
    Attack("texts to embed", "2,048", _asking(lambda: {"input": ["a pear"] * 2_048}, _EMBEDDINGS), _HOLDS, _SIMULATED),
    Attack("parts of content", "200,000 texts", _asking(partial(_parts, 200_000)), _HOLDS),
    Attack(
        "tokens in a text", "8 MB of <|im_end|>", _asking(partial(_tokens, 800_000)), _LONG, _HERMES, _writing("fine")
    ),
    Attack("many messages", "10,000", _asking(partial(_messages, 10_000)), _HOLDS, _HERMES, _writing("fine")),
    Attack(
        "outputs from the last to the first",
        "9,998",
        _asking(partial(_history, 9_998)),
        _HOLDS,
        _HERMES,
        _writing("fine"),
    ),
    Attack(
        "a call of many parameters", "19,000", _asking(partial(_called, 1)), _HOLDS, _QWEN, _writing("many parameters")
    ),
    Attack(
        "a call of unknown parameters",
        "1,900, of a tool of 10,000",
        _asking(partial(_called, 10_000)),
        _HOLDS,
        _QWEN,
        _writing("unknown parameters"),
    ),
    Attack(
        "a call without closing tags", "19,000", _asking(partial(_called, 1)), _HOLDS, _QWEN, _writing("lost closers")
    ),
    Attack("an answer of braces", "200,000", _asking(partial(_called, 1)), _HOLDS, _HERMES, _writing("braces")),
    Attack(
        "a long regular expression",
        r"\p{L}{1000}\p{N}{1000}, which the simulated model is to fill in",
        _asking(partial(_custom, r"\p{L}{1000}\p{N}{1000}")),
        _HOLDS,
        _SIMULATED,
    ),
]
