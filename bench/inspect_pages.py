"""What the pages cost: CPU of a request with `inspect` off, metadata and full, in one run.

    python bench/inspect_pages.py [--rate 50] [--seconds 60] [--pieces 60]

Three gateways stand before one model server that is made of bytes; each gets `rate` requests a second, streamed, with
five tools, in mode raw, and somebody follows the turns of each (`/ui/api/turns/live`), as a browser with the page open
does. Printed are milliseconds of CPU a request, as a ratio to `off`, the memory behind it, and what a follower got.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import aiohttp
from msgspec import Struct

from loading import HOST, BytesServer, cpu_s, free_port, memory_mb, sse, started

LEVELS: Final = ("off", "metadata", "full")
_TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": f"tool_{number}",
            "description": f"Does the work number {number}.",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}},
        },
    }
    for number in range(5)
]
_CALL: Final = '<tool_call>\n{"name": "tool_1", "arguments": {"text": "%s", "count": 3}}\n</tool_call>'


class _Model(BytesServer):
    """Streams one call in pieces of four characters."""

    events: tuple[bytes, ...] = ()

    async def answer(self, request: bytes) -> None:
        """See `BytesServer`."""
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        self.transport.write(head)
        for number, event in enumerate(self.events):
            self.transport.write(event)
            if number % 10 == 9:
                await asyncio.sleep(0.002)
        self.transport.close()


class _Level(Struct):
    """One gateway, and what was seen of it."""

    name: str
    url: str
    pid: int
    before_s: float = 0.0
    rows: int = 0
    done: int = 0
    failed: int = 0


def main() -> int:
    """Print the table. Ends with 1 where a request failed, or a follower did not get what it should."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rate", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--pieces", type=int, default=60)
    given = parser.parse_args()
    return asyncio.run(_measure(given.rate, given.seconds, given.pieces))


async def _measure(rate: int, seconds: int, pieces: int) -> int:
    text = _CALL % ("word " * 200)[: pieces * 4]
    chunks = [
        {"id": "x", "object": "text_completion", "created": 1, "choices": [{"index": 0, "text": text[at : at + 4]}]}
        for at in range(0, len(text), 4)
    ]
    end = {
        "id": "x",
        "object": "text_completion",
        "created": 1,
        "choices": [{"index": 0, "text": "", "finish_reason": "stop"}],
    }
    _Model.events = tuple(sse(*chunks, end, "[DONE]"))
    loop = asyncio.get_running_loop()
    port = free_port()
    server = await loop.create_server(_Model, HOST, port)
    with _gateways(f"http://{HOST}:{port}/v1") as levels:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            following = [asyncio.create_task(_follow(session, level)) for level in levels]
            await asyncio.gather(*(_ask(session, level) for level in levels for _ in range(20)))  # warm
            for level in levels:
                level.before_s, level.done = cpu_s(level.pid), 0
            await asyncio.gather(*(_load(session, level, rate, seconds) for level in levels))
            await asyncio.sleep(1)
            used = [(cpu_s(level.pid) - level.before_s) / max(1, level.done) * 1_000 for level in levels]
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
        print(f"{rate} requests a second each for {seconds} s, {len(chunks)} pieces an answer, the page open")
        print(f"{'inspect':<10}{'requests':>10}{'CPU ms':>9}{'ratio':>8}{'MB':>8}{'rows seen':>11}")
        for level, cost in zip(levels, used, strict=True):
            print(
                f"{level.name:<10}{level.done:>10,}{cost:>9.2f}{cost / used[0]:>8.2f}{memory_mb(level.pid):>8.0f}"
                f"{level.rows:>11,}"
            )
        wrong = any(level.failed or (level.name != "off" and level.rows < level.done) for level in levels)
    server.close()
    return 1 if wrong else 0


@contextmanager
def _gateways(upstream: str) -> Iterator[list[_Level]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        levels: list[_Level] = []
        for name in LEVELS:
            config, port = folder / f"{name}.toml", free_port()
            config.write_text(
                f"[server]\ninspect = '{name}'\nport = {port}\nlog_level = 'warning'\n[store]\nurl = 'none'\n"
                f"[[models]]\nname = 'm'\nupstream = '{upstream}'\nmode = 'raw'\ndialect = 'hermes'\n"
            )
            command = [sys.executable, "-m", "callwright", "serve", "--config", str(config)]
            process, _ = stack.enter_context(started(command, port))
            levels.append(_Level(name, f"http://{HOST}:{port}", process.pid))
        yield levels


async def _load(session: aiohttp.ClientSession, level: _Level, rate: int, seconds: int) -> None:
    """So many requests a second, whether or not those before are answered."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    tasks: list[asyncio.Task[None]] = []
    for number in range(rate * seconds):
        await asyncio.sleep(max(0.0, begin + number / rate - loop.time()))
        tasks.append(asyncio.create_task(_ask(session, level)))
    await asyncio.gather(*tasks)


async def _ask(session: aiohttp.ClientSession, level: _Level) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Go on."}], "tools": _TOOLS, "stream": True}
    async with session.post(f"{level.url}/v1/chat/completions", json=body) as response:
        answer = await response.read()
    if response.status != 200 or b"[DONE]" not in answer or b'"tool_calls"' not in answer:
        level.failed += 1
    level.done += 1


async def _follow(session: aiohttp.ClientSession, level: _Level) -> None:
    """Count the turns that are told, each once."""
    seen: set[str] = set()
    timeout = aiohttp.ClientTimeout(total=None)
    async with session.get(f"{level.url}/ui/api/turns/live", timeout=timeout, read_bufsize=2**22) as response:
        async for line in response.content:
            if line.startswith(b"data: "):
                seen.update(row["id"] for row in json.loads(line[6:]) if row["over"])
                level.rows = len(seen)


if __name__ == "__main__":
    sys.exit(main())
