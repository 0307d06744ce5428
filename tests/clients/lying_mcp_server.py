"""An MCP server that sends more than anybody should read, with nothing but the standard library.

    lying_mcp_server.py stdio|http LIST

`LIST` says what its list of tools is like. The first line of `http` is the port.
"""

import itertools
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PIECE = 65_536
DEEP = 100_000
ENOUGH = 5_000  # pieces: more than any reader takes
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


def doubling() -> dict[str, Any]:
    """A schema of a few lines that stands for a billion others."""
    defs: dict[str, Any] = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)}
    return {**OBJECT, "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, "d30": {}}}


CALLS = ("honest", "endless", "values", "deep", "chatty")
TOOLS = [{"name": name, "inputSchema": OBJECT} for name in CALLS]
PATTERN = {**OBJECT, "properties": {"x": {"type": "string", "pattern": r"((a{99}){99}){99}"}}}
LISTS: dict[str, Any] = {
    "fair": {"tools": TOOLS},
    "pages": {"tools": [], "nextCursor": "again"},
    "large": {"tools": [{**TOOLS[0], "description": "x" * 60_000}]},
    "parts": {"tools": [{"name": "f", "inputSchema": doubling()}]},
    "patterns": {"tools": [{"name": "f", "inputSchema": PATTERN}]},
}


def answered(message: dict[str, Any]) -> Iterator[str]:
    """The answer to a request, in pieces."""
    params = message.get("params") or {}
    begin = f'{{"jsonrpc": "2.0", "id": {json.dumps(message["id"])}, '
    if message["method"] == "initialize":
        server = {"name": "liar", "version": "1"}
        version = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
        yield f'{begin}"result": {json.dumps(version)}}}'
    elif message["method"] == "tools/list" and sys.argv[2] == "endless":
        yield f'{begin}"result": {{"tools": [], "x": "'
        yield from itertools.repeat("x" * PIECE, ENOUGH)
    elif message["method"] == "tools/list":
        yield f'{begin}"result": {json.dumps(LISTS[sys.argv[2]])}}}'
    elif message["method"] == "tools/call":
        yield f'{begin}"result": {{"content": [{{"type": "text", "text": "honestly'
        match params["name"]:
            case "endless":
                yield from itertools.repeat("x" * PIECE, ENOUGH)
            case "values":
                yield '"}], "structuredContent": {"a": [' + "{}," * 30_000 + "{}]}}}"
                return
            case "deep":
                yield '"}], "structuredContent": {"a": ' + "[" * DEEP + "]" * DEEP + "}}}"
                return
        yield '"}]}}'
    else:
        yield f'{begin}"error": {{"code": -32601, "message": "no such method"}}}}'


def chatter() -> Iterator[str]:
    told = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "and so on"}}
    return itertools.repeat(json.dumps(told))


def is_chatty(message: dict[str, Any]) -> bool:
    return bool(message["method"] == "tools/call" and message["params"]["name"] == "chatty")


def stdio() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        for told in chatter() if is_chatty(message) else ():
            print(told, flush=True)
        for piece in answered(message):
            print(piece, end="")
        print(flush=True)


class Handler(BaseHTTPRequestHandler):
    """JSON, or a stream of events for a chatty call."""

    def do_POST(self) -> None:
        """Answer a message."""
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message:
            self.send_response(202)
            self.end_headers()
            return
        streams = is_chatty(message) or (message.get("params") or {}).get("arguments", {}).get("stream")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if streams else "application/json")
        self.end_headers()
        for told in chatter() if is_chatty(message) else ():
            self.wfile.write(f"data: {told}\n\n".encode())
        self.wfile.write(b"data: " if streams else b"")
        for piece in answered(message):
            self.wfile.write(piece.encode())
        self.wfile.write(b"\n\n" if streams else b"")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


if __name__ == "__main__":
    try:
        if sys.argv[1] == "stdio":
            stdio()
        else:
            server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            server.daemon_threads = True
            print(server.server_port, flush=True)
            server.serve_forever()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.stderr.close()
