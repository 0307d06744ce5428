"""Memory of a gateway after many different conversations: it is flat if its caches are bounded.

    python bench/memory.py [--conversations 100000] [--modes native,prompt,raw] [--tools 5] [--calls 80] [--wire chat]

One gateway for each mode, with a model server that answers immediately. No two conversations share a text, an ID or a
tool's description; each is asked twice, the second time one call longer, as an agent asks. With the defaults a request
has 60 kB. The table has the memory (RSS) of the gateway's processes in MB after each number of conversations.
"""

import argparse
import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import fake_model
from fake_model import Wire, asked
from gateways import MODES, callwright
from load import posted, until_it_answers
from loading import HOST, free_port, memory_mb, run, started

MARKS: Final = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
_CONNECTIONS: Final = 8
_PLACE: Final = b"@@@@@@@@"
# Parts of the recorded request, each with the same part of one conversation only.
_PARTS: Final = {
    b"so it goes": b"so @@@@@@@@",
    b"It is written": b"It is @@@@@@@@",
    b'"call_': b'"c@@@@@@@@_',
    b"of the project": b"of @@@@@@@@",
    b"Be brief": b"Be @@@@@@@@",
}


def templates(wire: Wire, tools: int, calls: int) -> list[bytes]:
    """Two requests of a conversation, whose number is to be put in."""
    found: list[bytes] = []
    for number in (calls, calls + 1):
        body = asked(wire, tools, number, stream=False)
        request = posted(wire, body)
        head, _, data = request.partition(b"\r\n\r\n")
        for part, with_place in _PARTS.items():
            data = data.replace(part, with_place)
        head = re.sub(rb"content-length: \d+", b"content-length: %d" % len(data), head)
        found.append(head + b"\r\n\r\n" + data)
    return found


async def ask(port: int, requests: list[bytes], numbers: Iterator[int]) -> None:
    """Ask for conversation after conversation over one connection."""
    reader, writer = await asyncio.open_connection(HOST, port)
    for number in numbers:
        for request in requests:
            writer.write(request.replace(_PLACE, b"%08d" % number))
            answered = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", answered)
            if b" 200 " not in answered[:20] or length is None:
                raise ConnectionError(answered)
            await reader.readexactly(int(length[1]))
    writer.close()


async def ask_all(port: int, requests: list[bytes], numbers: range) -> None:
    """Ask for these conversations over several connections."""
    each = iter(numbers)
    await asyncio.gather(*(ask(port, requests, each) for _ in range(_CONNECTIONS)))


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--conversations", type=int, default=MARKS[-1], help="how many in each mode")
    options.add_argument("--modes", default=",".join(MODES), help="modes of the gateway")
    options.add_argument("--tools", type=int, default=5, help="that each request offers")
    options.add_argument("--calls", type=int, default=65, help="in the history of the first request")
    options.add_argument("--wire", choices=fake_model.PATHS, default="chat", help="API of the client")
    given = options.parse_args()
    requests = templates(given.wire, given.tools, given.calls)
    marks = [mark for mark in MARKS if mark < given.conversations] + [given.conversations]
    print(f"{len(requests[0]) // 1000} kB{'start':>15}" + "".join(f"{mark:>9,}" for mark in marks))
    port = free_port()
    with TemporaryDirectory() as folder, started([sys.executable, fake_model.__file__, "--port", str(port)], port):
        for mode in given.modes.split(","):
            gateway = callwright(Path(folder), f"http://{HOST}:{port}/v1", mode)
            own = free_port()
            with started(gateway.command(own), own, gateway.environment) as (process, _):
                until_it_answers(own, requests[0].replace(_PLACE, b"warm____"))
                print(f"{mode:12}{memory_mb(process.pid):8.0f}", end="", flush=True)
                for begin, end in zip([0, *marks], marks, strict=False):
                    run(ask_all(own, requests, range(begin, end)))
                    print(f"{memory_mb(process.pid):9.0f}", end="", flush=True)
                print()


if __name__ == "__main__":
    main()
