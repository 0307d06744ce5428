"""A model server that costs next to nothing: it answers each request with a call, as canned bytes.

    python bench/fake_model.py --port 8000

It speaks Chat Completions, and Completions for who renders prompts himself: what is asked without tools is answered in
Hermes' markup. A stream is `CHUNKS` pieces, each a write of its own, as fast as they go or as `every` asks for in the
request. `asked` makes the requests, for each API that a client may speak.
"""

import argparse
import asyncio
import json
import re
from typing import Any, Final, Literal, TypeAlias

from loading import HOST, BytesServer, chunk, run, sse

__all__ = ["CHUNKS", "MODEL", "PATHS", "Wire", "asked", "every"]

Wire: TypeAlias = Literal["chat", "responses", "messages"]
PATHS: Final[dict[Wire, str]] = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}
MODEL: Final = "fake"
CHUNKS: Final = 100
ARGUMENTS: Final = json.dumps({"path": "notes/today.txt", "text": "so it goes, " * 70, "mode": "append"})
MARKED: Final = f'<tool_call>\n{{"name": "write_file", "arguments": {ARGUMENTS}}}\n</tool_call>'
_EVERY: Final = re.compile(rb"\(a chunk every (\d+) ms\)")


# --- what is asked ---


def every(pace_ms: int) -> str:
    """Text in a request that asks for a pause between two chunks."""
    return f"(a chunk every {pace_ms} ms)" if pace_ms else ""


def asked(wire: Wire, tools: int, calls: int, *, stream: bool, pace_ms: int = 0) -> dict[str, Any]:
    """A request that offers so many tools, behind so many calls and their outputs."""
    offered = [_tool(number) for number in range(tools)]
    before = [
        (f"call_{number}", {"path": f"notes/{number}.txt", "text": "so it goes, " * 20}) for number in range(calls)
    ]
    system, user, output = "Be brief. " * 20, f"Note what today was. {every(pace_ms)}", "It is written. " * 20
    body: dict[str, Any] = {"model": MODEL, "stream": stream}
    if wire == "chat":
        messages = [_said("system", system), _said("user", user)]
        for id_, arguments in before:
            function = {"name": "write_file", "arguments": json.dumps(arguments)}
            call = {"id": id_, "type": "function", "function": function}
            messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
            messages += [{"role": "tool", "tool_call_id": id_, "content": output}]
        return body | {"messages": messages, "tools": [{"type": "function", "function": tool} for tool in offered]}
    if wire == "responses":
        items = [_said("user", user)]
        for id_, arguments in before:
            call = {"type": "function_call", "call_id": id_, "name": "write_file", "arguments": json.dumps(arguments)}
            items += [call, {"type": "function_call_output", "call_id": id_, "output": output}]
        functions = [{"type": "function", **tool} for tool in offered]
        return body | {"instructions": system, "input": items, "tools": functions}
    messages = [_said("user", user)]
    for id_, arguments in before:
        messages += [_said("assistant", [{"type": "tool_use", "id": id_, "name": "write_file", "input": arguments}])]
        messages += [_said("user", [{"type": "tool_result", "tool_use_id": id_, "content": output}])]
    named = [
        {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
        for tool in offered
    ]
    return body | {"max_tokens": 4096, "system": system, "messages": messages, "tools": named}


def _said(role: str, content: object) -> dict[str, Any]:
    return {"role": role, "content": content}


def _tool(number: int) -> dict[str, Any]:
    """The first is the one that is called."""
    properties = {
        "path": {"type": "string", "description": "Where the file is, below the folder of the project."},
        "text": {"type": "string", "description": "What is to be written, as plain text, at most 100 kB of it."},
        "mode": {"type": "string", "enum": ["append", "replace", "create"], "description": "What becomes of the rest."},
        "lines": {"type": "array", "items": {"type": "integer"}, "description": "Which lines, from the first one on."},
    }
    name = "write_file" if not number else f"tool_{number}"
    parameters = {"type": "object", "properties": properties, "required": ["path"], "additionalProperties": False}
    described = "Writes a file, or does one of some other things that have to do with files and their lines."
    return {"name": name, "description": described, "parameters": parameters}


# --- what is answered ---


def _cut(text: str) -> list[str]:
    size = -(-len(text) // CHUNKS)
    return [text[at : at + size] for at in range(0, len(text), size)]


def _native_call(piece: str, *, first: bool) -> dict[str, Any]:
    named = {"id": "call_x", "type": "function"} if first else {}
    function = {"name": "write_file", "arguments": piece} if first else {"arguments": piece}
    return {"tool_calls": [{"index": 0, **named, "function": function}]}


def _answers() -> dict[tuple[str, bool], list[bytes]]:
    """The bodies, in pieces, by what is asked: `native`, `prompt` (no tools), `raw`; whole or as a stream."""
    usage = {"prompt_tokens": 9, "completion_tokens": 99, "total_tokens": 108}
    call = {"id": "call_x", "type": "function", "function": {"name": "write_file", "arguments": ARGUMENTS}}
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": MODEL, "usage": usage}

    def answer(message: Any, finish: str) -> list[bytes]:
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        return [json.dumps({**whole, "choices": [choice]}).encode()]

    native = [chunk(_native_call(piece, first=not number)) for number, piece in enumerate(_cut(ARGUMENTS))]
    text = [chunk({"content": piece}) for piece in _cut(MARKED)]
    raw = [{"id": "x", "choices": [{"index": 0, "text": piece, "finish_reason": None}]} for piece in _cut(MARKED)]
    end = {"id": "x", "choices": [{"index": 0, "text": "", "finish_reason": "stop"}]}
    return {
        ("native", False): answer({"content": None, "tool_calls": [call]}, "tool_calls"),
        ("prompt", False): answer({"content": MARKED}, "stop"),
        ("raw", False): [json.dumps({**whole, "choices": [{"text": MARKED, "finish_reason": "stop"}]}).encode()],
        ("native", True): sse(*native, chunk({}, "tool_calls"), "[DONE]"),
        ("prompt", True): sse(*text, chunk({}, "stop"), "[DONE]"),
        ("raw", True): sse(*raw, end, "[DONE]"),
    }


class FakeServer(BytesServer):
    """Tells of its model, and that it is well; answers all else with a call."""

    answers = _answers()
    models = json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "us"}]}).encode()

    async def answer(self, request: bytes) -> None:
        """See `BytesServer`."""
        if request.startswith(b"GET "):
            return self._whole(self.models)
        kind = "raw" if b"/chat/" not in request[:40] else "native" if b'"tools"' in request else "prompt"
        stream = re.search(rb'"stream": ?true', request) is not None
        pieces = self.answers[kind, stream]
        if not stream:
            return self._whole(pieces[0])
        paced = _EVERY.search(request)
        pace_s = int(paced[1]) / 1000 if paced else 0
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for piece in pieces:
            self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await asyncio.sleep(pace_s)
        self.transport.write(b"0\r\n\r\n")
        return None

    def _whole(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.transport.write(head + body)


async def serve(port: int) -> None:
    """Serve until the process ends."""
    server = await asyncio.get_running_loop().create_server(FakeServer, HOST, port, backlog=4096)
    await server.serve_forever()


def main() -> None:
    """Serve at a port."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--port", type=int, required=True)
    run(serve(options.parse_args().port))


if __name__ == "__main__":
    main()
