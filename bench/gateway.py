"""What the gateway costs beside a bare pass-through and LiteLLM's proxy: CPU and time for requests and streams.

    python bench/gateway.py [--rounds 3] [--seconds 3] [--tools 5] [--calls 0] [--litellm PYTHON]

One run starts a fake model server that costs next to nothing, then one gateway at a time: `bare` hands requests on with
Starlette and aiohttp on uvicorn; ours runs in each mode, with parsing and checking on; LiteLLM's proxy runs where
`--litellm` names the Python of an environment with `litellm[proxy]`. Every request offers some tools, and may come
behind earlier calls, as those of agents do; every answer is a call. Columns: CPU of the gateway's processes for one
request (32 connections) and for one chunk of a stream, of which 16 run at once with 100 chunks each, as fast as they go
(`burst`) and with 10 ms between chunks (`paced`), as µs and as multiples of `bare`; requests per second with 1, 32 and
128 connections; ms to the first chunk and between two chunks of a paced stream (the 90th percentile); MB of memory;
seconds to start. CPU ratios hold on a busy machine, the rest does not.
"""

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

from loading import BytesServer, chunk, cpu_s, free_port, memory_mb, sse, started

CHUNKS = 100
STREAMS = 16
PACE_S = 0.01
CONNECTIONS = (1, 32, 128)
MODES = {
    "native": "mode = 'native'",
    "prompt": "dialect = 'hermes'",
    "raw": "mode = 'raw'\ndialect = 'hermes'\nserver = 'vllm'",
}
ARGUMENTS = json.dumps({"path": "notes/today.txt", "text": "so it goes, " * 70, "mode": "append"})
MARKED = f'<tool_call>\n{{"name": "write_file", "arguments": {ARGUMENTS}}}\n</tool_call>'
HERE = Path(__file__).resolve()


def tool(number: int) -> dict[str, Any]:
    """One of the five tools that each request offers."""
    properties = {
        "path": {"type": "string", "description": "Where the file is, below the folder of the project."},
        "text": {"type": "string", "description": "What is to be written, as plain text, at most 100 kB of it."},
        "mode": {"type": "string", "enum": ["append", "replace", "create"], "description": "What becomes of the rest."},
        "lines": {"type": "array", "items": {"type": "integer"}, "description": "Which lines, from the first one on."},
    }
    name = "write_file" if not number else f"tool_{number}"
    parameters = {"type": "object", "properties": properties, "required": ["path"], "additionalProperties": False}
    described = "Writes a file, or does one of some other things that have to do with files and their lines."
    return {"type": "function", "function": {"name": name, "description": described, "parameters": parameters}}


def asked(tools: int, calls: int) -> dict[str, Any]:
    """A request that offers so many tools, behind so many calls and their outputs."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief. " * 20},
        {"role": "user", "content": "Note what today was."},
    ]
    for number in range(calls):
        arguments = json.dumps({"path": f"notes/{number}.txt", "text": "so it goes, " * 20})
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "write_file", "arguments": arguments}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": "It is written. " * 20})
    return {"model": "fake", "messages": messages, "tools": [tool(number) for number in range(tools)]}


# --- the fake model server ---


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
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "fake", "usage": usage}

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
    """Answers each request with canned bytes; each chunk of a stream is a write of its own."""

    answers = _answers()

    async def answer(self, request: bytes) -> None:
        """See `BytesServer`."""
        stream = re.search(rb'"stream": ?true', request) is not None
        pace_s = PACE_S if b'"paced"' in request else 0
        kind = "raw" if b"/chat/" not in request[:40] else "native" if b'"tools"' in request else "prompt"
        pieces = self.answers[kind, stream]
        if not stream:
            self.transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
                % (len(pieces[0]), pieces[0])
            )
            return
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for piece in pieces:
            self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await asyncio.sleep(pace_s)
        self.transport.write(b"0\r\n\r\n")


async def serve_fake(port: int) -> None:
    """Serve until the process ends."""
    server = await asyncio.get_running_loop().create_server(FakeServer, "127.0.0.1", port)
    await server.serve_forever()


def serve_bare(upstream: str, port: int) -> None:
    """The pass-through that everything is measured against."""
    import aiohttp
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

    sessions: list[aiohttp.ClientSession] = []

    async def hand_on(request: Request) -> Response:
        if not sessions:
            sessions.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        body = await request.body()
        headers = {"content-type": "application/json"}
        answer = await sessions[0].post(f"{upstream}/chat/completions", data=body, headers=headers)
        if answer.content_type != "text/event-stream":
            return Response(await answer.read(), media_type="application/json")
        return StreamingResponse(answer.content.iter_any(), media_type="text/event-stream")

    app = Starlette(routes=[Route("/v1/chat/completions", hand_on, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


# --- the load ---


class Load(NamedTuple):
    """What came of some seconds of load."""

    answers: int
    seconds: float
    first_ms: float
    gap_ms: float  # the 90th percentile


async def _load(
    url: str, asks: Mapping[str, Any], connections: int, seconds: float, *, stream: bool, paced: bool = False
) -> Load:
    body = json.dumps({**asks, "stream": stream, **({"user": "paced"} if paced else {})}).encode()
    host, port = url.removeprefix("http://").split(":")
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer sk-x\r\n"
    request = f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    counts, firsts, gaps = [0], list[float](), list[float]()
    end = time.perf_counter() + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        while time.perf_counter() < end:
            began = time.perf_counter()
            writer.write(request)
            answered = await reader.readuntil(b"\r\n\r\n")
            assert b" 200 " in answered[:20], answered
            if length := re.search(rb"(?i)content-length: (\d+)", answered):
                await reader.readexactly(int(length[1]))
                counts[0] += 1
                continue
            last = 0.0
            while size := int(await reader.readline(), 16):
                data = await reader.readexactly(size + 2)
                counts[0] += data.count(b"data: ")
                now = time.perf_counter()
                (gaps if last else firsts).append((now - (last or began)) * 1000)
                last = now
            await reader.readline()
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(connections)))
    took = time.perf_counter() - began
    return Load(counts[0], took, median(firsts or [0.0]), quantiles(gaps or [0.0, 0.0], n=10)[-1])


# --- measuring ---


class Measured(NamedTuple):
    """One gateway in one round."""

    request_us: float
    burst_us: float
    paced_us: float
    rates: tuple[float, ...]
    first_ms: float
    gap_ms: float
    memory_mb: float
    start_s: float


class Gateway(NamedTuple):
    """How one is started: its command, but for the port, and what stands in its environment."""

    command: list[str]
    environment: Mapping[str, str] = MappingProxyType({})


def _measured(gateway: Gateway, asks: Mapping[str, Any], seconds: float) -> Measured:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with started([*gateway.command, "--port", str(port)], port, gateway.environment) as (process, start_s):
        pid = process.pid
        asyncio.run(_load(url, asks, 4, 1.0, stream=False))  # warm
        asyncio.run(_load(url, asks, 2, 0.5, stream=True))
        rates = []
        request_us = 0.0
        for connections in CONNECTIONS:
            before = cpu_s(pid)
            load = asyncio.run(_load(url, asks, connections, seconds, stream=False))
            rates.append(load.answers / load.seconds)
            if connections == 32:
                request_us = (cpu_s(pid) - before) / load.answers * 1e6
        chunk_us: list[float] = []
        for paced in (False, True):
            before = cpu_s(pid)
            load = asyncio.run(_load(url, asks, STREAMS, seconds, stream=True, paced=paced))
            chunk_us.append((cpu_s(pid) - before) / load.answers * 1e6)
        burst_us, paced_us = chunk_us
        held_mb = memory_mb(pid)
        return Measured(request_us, burst_us, paced_us, tuple(rates), load.first_ms, load.gap_ms, held_mb, start_s)


def _gateways(folder: Path, upstream: str, litellm: str | None) -> dict[str, Gateway]:
    """All that are measured, by name."""
    found = {"bare": Gateway([sys.executable, str(HERE), "--bare", upstream])}
    for mode, lines in MODES.items():
        path = folder / f"{mode}.toml"
        path.write_text(f"[store]\nurl = 'none'\n[[models]]\nname = 'fake'\nupstream = '{upstream}'\n{lines}\n")
        command = str(Path(sys.executable).with_name("callwright"))
        found[f"callwright {mode}"] = Gateway([command, "serve", "--config", str(path)])
    if litellm:
        path = folder / "litellm.yaml"
        params = {"model": "openai/fake", "api_base": upstream, "api_key": "x"}
        path.write_text(json.dumps({"model_list": [{"model_name": "fake", "litellm_params": params}]}))
        start = [str(Path(litellm).with_name("litellm")), "--config", str(path), "--host", "127.0.0.1"]
        quiet = ["--num_workers", "1", "--telemetry", "False"]
        settings = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": "sk-x", "LITELLM_LOG": "ERROR"}
        found["litellm"] = Gateway([*start, *quiet], settings)
    return found


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3, help="each gateway in turn, so often; the median counts")
    options.add_argument("--seconds", type=float, default=3.0, help="of each load")
    options.add_argument("--tools", type=int, default=5, help="that each request offers")
    options.add_argument("--calls", type=int, default=0, help="that each request has in its history, with outputs")
    options.add_argument("--litellm", metavar="PYTHON", help="of an environment with litellm[proxy]")
    options.add_argument("--fake", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--bare", metavar="URL", help=argparse.SUPPRESS)
    options.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.fake:
        return asyncio.run(serve_fake(given.port))
    if given.bare:
        return serve_bare(given.bare, given.port)
    asks = asked(given.tools, given.calls)
    print(f"{given.tools} tools, {given.calls} calls before, {len(json.dumps(asks)):,} bytes a request")
    port = free_port()
    with TemporaryDirectory() as folder, started([sys.executable, str(HERE), "--fake", "--port", str(port)], port):
        gateways = _gateways(Path(folder), f"http://127.0.0.1:{port}/v1", given.litellm)
        rounds: dict[str, list[Measured]] = {name: [] for name in gateways}
        for _ in range(given.rounds):
            for name, gateway in gateways.items():
                rounds[name].append(_measured(gateway, asks, given.seconds))
    _print({name: _median(found) for name, found in rounds.items()})
    return None


def _median(found: list[Measured]) -> Measured:
    rates = tuple(median(each.rates[number] for each in found) for number in range(len(CONNECTIONS)))
    middle = {name: median(getattr(each, name) for each in found) for name in Measured._fields if name != "rates"}
    return Measured(rates=rates, **middle)


def _print(found: Mapping[str, Measured]) -> None:
    heads = [*("request µs", "x bare", "burst µs", "x bare", "paced µs", "x bare")]
    heads += [*(f"{count} conn/s" for count in CONNECTIONS), "first ms", "gap ms", "MB", "start s"]
    print(f"{'':18}" + "".join(f"{head:>11}" for head in heads))
    bare = found["bare"]
    for name, one in found.items():
        cells = [f"{one.request_us:.0f}", f"{one.request_us / bare.request_us:.1f}"]
        cells += [f"{one.burst_us:.1f}", f"{one.burst_us / bare.burst_us:.1f}"]
        cells += [f"{one.paced_us:.1f}", f"{one.paced_us / bare.paced_us:.1f}"]
        cells += [f"{rate:,.0f}" for rate in one.rates]
        cells += [f"{one.first_ms:.1f}", f"{one.gap_ms:.1f}", f"{one.memory_mb:.0f}", f"{one.start_s:.1f}"]
        print(f"{name:18}" + "".join(f"{cell:>11}" for cell in cells))


if __name__ == "__main__":
    main()
