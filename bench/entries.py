"""How many functions of ours three recorded requests enter, in how many files: a count that no machine changes.

    .venv/bin/python bench/entries.py            the table
    .venv/bin/python bench/entries.py --walk a   each function that is entered, in order, with its file

The requests: a streamed Harmony answer of five chunks in mode raw with one call (`a`), a Responses request with a
custom tool held to a regular expression (`b`), one `callwright.parse` of three chunks (`c`). Each is made twice and the
second is counted, so what is kept from request to request is warm. The gateway runs in this process without sockets to
the client; its model server is a loopback socket that sends each chunk when the one before was read.
"""

import argparse
import asyncio
import gc
import json
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import callwright
from callwright.gateway.app import create_app
from callwright.gateway.config.config import Config, InspectLevel, ModelConfig, ServerConfig

SOURCES: Final = str(Path(callwright.__file__).parent)
WEATHER: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}
HARMONY: Final = (
    "<|channel|>analysis<|message|>The user wants the weather.",
    "<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>",
    '{"city": "Par',
    'is", "days"',
    ": 3}<|call|>",
)
TESTS: Final = {
    "type": "custom",
    "name": "shell",
    "description": "Runs a command.",
    "format": {"type": "grammar", "syntax": "regex", "definition": "[a-z]+( -?[a-z/]+)*"},
}
CUSTOM: Final = ("<|channel|>commentary to=functions.shell <|constrain|>json<|message|>", '{"input": "pytest"}<|call|>')
HERMES: Final = ("Hm. <tool_call>", '{"name": "get_weather", "arguments": {"city": "Paris"}}', "</tool_call>")


class Counting:
    """Counts the entries of functions of the package while it is on; a generator that goes on is entered anew."""

    def __init__(self) -> None:
        self.entered: list[CodeType] = []

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCES):
            self.entered.append(frame.f_code)

    def __enter__(self) -> "Counting":
        gc.collect()
        threading.setprofile(self)  # of threads that begin from now on
        sys.setprofile(self)
        return self

    def __exit__(self, *args: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)


@asynccontextmanager
async def model_server(pieces: tuple[str, ...]) -> AsyncIterator[str]:
    """A completion endpoint that answers with these pieces, one event each."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
            await reader.readexactly(length)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            ends = [{"text": piece, "finish_reason": None} for piece in pieces]
            ends[-1]["finish_reason"] = "stop"
            for choice in ends:
                data = b"data: " + json.dumps({"choices": [{"index": 0, **choice}]}).encode() + b"\n\n"
                writer.write(b"%x\r\n%s\r\n" % (len(data), data))
                await writer.drain()
                await asyncio.sleep(0.01)  # so that each comes by itself
            data = b"data: [DONE]\n\n"
            writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data))
            await writer.drain()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def asked(app: Callable[..., Awaitable[None]], path: str, body: object) -> bytes:
    """One request to an ASGI application; answers the body."""
    data = json.dumps(body).encode()
    came: list[bytes] = []
    messages = [{"type": "http.request", "body": data, "more_body": False}]
    stays = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await stays.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        came.append(message.get("body", b""))

    headers = [(b"content-type", b"application/json"), (b"host", b"127.0.0.1:8080")]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "scheme": "http",
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 8080),
        "root_path": "",
        "state": {},
    }
    await app(scope, receive, send)
    return b"".join(came)


async def through_gateway(
    pieces: tuple[str, ...], path: str, body: dict[str, Any], expected: bytes, inspect: InspectLevel = "off"
) -> list[CodeType]:
    """The functions that the second of two alike requests enters. `inspect`: what is kept for the pages."""
    async with model_server(pieces) as url:
        model = ModelConfig(name="m", upstream=url, mode="raw", dialect="harmony", server="vllm")
        app = create_app(Config(server=ServerConfig(log_level="error", inspect=inspect), models=(model,)))
        async with app.router.lifespan_context(app):
            await asked(app, path, body)
            with Counting() as counting:
                answer = await asked(app, path, body)
    assert expected in answer, answer
    return counting.entered


def chat_stream(inspect: InspectLevel = "off") -> list[CodeType]:
    """`a`; with `inspect` `full` it is `d`."""
    messages = [{"role": "user", "content": "What is the weather in Paris?"}]
    body = {"model": "m", "messages": messages, "tools": [WEATHER], "stream": True}
    expected = b'"finish_reason":"tool_calls"'
    return asyncio.run(through_gateway(HARMONY, "/v1/chat/completions", body, expected, inspect))


def custom_tool() -> list[CodeType]:
    """`b`."""
    body = {"model": "m", "input": "Run the tests.", "tools": [TESTS], "store": True}
    return asyncio.run(through_gateway(CUSTOM, "/v1/responses", body, b'"input":"pytest"'))


def parse() -> list[CodeType]:
    """`c`."""
    for _ in range(2):
        with Counting() as counting:
            turn = callwright.parse(iter(HERMES), dialect="hermes", tools=[WEATHER])
    assert [(call.name, call.arguments) for call in turn.calls] == [("get_weather", '{"city": "Paris"}')]
    return counting.entered


WALKS: Final[dict[str, tuple[str, Callable[[], list[CodeType]]]]] = {
    "a": ("streamed Harmony, 5 chunks", chat_stream),
    "b": ("Responses, custom tool", custom_tool),
    "c": ("parse, 3 chunks", parse),
    "d": ("a, kept for the pages", partial(chat_stream, "full")),
}


def file_of(code: CodeType) -> str:
    return str(Path(code.co_filename).relative_to(SOURCES))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--walk", choices=WALKS)
    arguments.add_argument("--most", action="store_true", help="the functions that are entered most")
    given = arguments.parse_args()
    if given.walk:
        entered = WALKS[given.walk][1]()
        if given.most:
            for code, times in Counter(entered).most_common(60):
                print(f"{times:5} {file_of(code)}:{code.co_firstlineno} {code.co_qualname}")
            return
        for code in entered:
            print(f"{file_of(code)}:{code.co_firstlineno} {code.co_qualname}")
        return
    print(f"{'request':30} {'entries':>8} {'functions':>10} {'files':>6} {'changes of file':>16}")
    for title, walk in WALKS.values():
        entered = walk()
        files = [file_of(code) for code in entered]
        changes = sum(one != other for one, other in pairwise(files))
        print(f"{title:30} {len(entered):8} {len(set(entered)):10} {len(set(files)):6} {changes:16}")


if __name__ == "__main__":
    main()
