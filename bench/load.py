"""Clients that ask as fast as they are answered, and what they saw."""

import asyncio
import json
import re
import time
from collections.abc import Mapping
from statistics import median, quantiles
from typing import Any, Final, NamedTuple

from fake_model import PATHS, Wire
from loading import HOST, run

__all__ = ["Load", "load", "posted", "until_it_answers"]

_PATIENCE_S: Final = 60.0


def posted(wire: Wire, body: Mapping[str, Any]) -> bytes:
    """A request as it goes over the wire."""
    data = json.dumps(body).encode()
    head = f"POST {PATHS[wire]} HTTP/1.1\r\nhost: {HOST}\r\nauthorization: Bearer sk-x\r\nx-api-key: sk-x\r\n"
    return f"{head}content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data


class Load(NamedTuple):
    """What came of some seconds of load."""

    answers: int
    seconds: float
    first_ms: float
    gap_ms: float  # the 90th percentile


async def load(port: int, request: bytes, connections: int, seconds: float) -> Load:
    """Ask over so many connections for some seconds; each asks anew when it is answered."""
    answers, firsts, gaps = [0], list[float](), list[float]()
    end = time.perf_counter() + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        while time.perf_counter() < end:
            began = time.perf_counter()
            writer.write(request)
            answered = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in answered[:20]:
                raise ConnectionError(answered)
            answers[0] += 1
            if length := re.search(rb"(?i)content-length: (\d+)", answered):
                await reader.readexactly(int(length[1]))
                continue
            last = 0.0
            while size := int(await reader.readline(), 16):
                await reader.readexactly(size + 2)
                now = time.perf_counter()
                (gaps if last else firsts).append((now - (last or began)) * 1000)
                last = now
            await reader.readline()
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(connections)))
    took = time.perf_counter() - began
    return Load(answers[0], took, median(firsts or [0.0]), quantiles(gaps or [0.0, 0.0], n=10)[-1])


def until_it_answers(port: int, request: bytes) -> None:
    """Some listen before they know the model server."""
    until = time.perf_counter() + _PATIENCE_S
    while True:
        try:
            if run(load(port, request, 1, 0.01)).answers:
                return
        except (ConnectionError, EOFError):
            if time.perf_counter() > until:
                raise
            time.sleep(0.02)
