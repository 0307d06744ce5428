"""Whether a change of the configuration drops streams, and how soon it takes effect.

    python bench/reload.py [--streams 500] [--workers 1] [--reloads 3]

Streams of ten seconds run through the gateway while its file gets another key and another model, again and again. A
stream is dropped if it lacks its last event. The times are from SIGHUP until a new key is accepted (with several
workers, on several connections in a row), and, to compare, of the same requests with the old key before.
"""

import argparse
import asyncio
import hashlib
import os
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import fake_model
from fake_model import MODEL, asked
from load import posted
from loading import HOST, free_port, run, started

PACE_MS: Final = 100
PAUSE_S: Final = 1.0
OLD: Final = "sk-x"  # the key of `posted`


def _write(path: Path, upstream: str, workers: int, keys: list[str], models: list[str]) -> None:
    tables = [f"[[models]]\nname = '{name}'\nupstream = '{upstream}'\nmode = 'native'\n" for name in models]
    tables += [
        f"[[keys]]\nname = 'key{number}'\nsha256 = '{hashlib.sha256(key.encode()).hexdigest()}'\n"
        f"max_requests = 100_000\n"
        for number, key in enumerate(keys)
    ]
    new = path.with_suffix(".new")
    head = (
        f"server.max_requests = 100_000\nserver.workers = {workers}\nserver.log_level = 'error'\nstore.url = 'none'\n"
    )
    new.write_text(head + "\n".join(tables))
    new.replace(path)


async def _answer(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(request)
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def _until_it_works(port: int, key: str, times: int) -> float:
    """Seconds until the key is accepted on this many connections in a row."""
    began, accepted = time.perf_counter(), 0
    request = f"GET /v1/models HTTP/1.1\r\nhost: {HOST}\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n"
    while accepted < times:
        found = await _answer(port, request.encode())
        accepted = accepted + 1 if found.startswith(b"HTTP/1.1 200") else 0
    return time.perf_counter() - began


async def _measure(port: int, pid: int, path: Path, upstream: str, given: argparse.Namespace) -> None:
    """Measure and print the numbers."""
    body = posted("chat", asked("chat", 1, 0, stream=True, pace_ms=PACE_MS))
    body = body.replace(b"content-type", b"connection: close\r\ncontent-type", 1)
    streams = [asyncio.create_task(_answer(port, body)) for _ in range(given.streams)]
    took_s, before_s, times = [], [], 8 if given.workers > 1 else 1
    for number in range(given.reloads):
        await asyncio.sleep(PAUSE_S)
        before_s.append(await _until_it_works(port, OLD, times))
        key = f"sk-new-{number}"
        _write(path, upstream, given.workers, [OLD, key], [MODEL, f"other-{number}"])
        os.kill(pid, signal.SIGHUP)
        took_s.append(await _until_it_works(port, key, times))
    running = sum(not stream.done() for stream in streams)
    answers = await asyncio.gather(*streams)
    print(f"{running} of {given.streams} streams were running at the last change")
    print(f"dropped streams: {sum(b'data: [DONE]' not in answer for answer in answers)}")
    print(f"longest time until a new key worked: {max(took_s):.3f} s; the old key before: {max(before_s):.3f} s")


def main() -> None:
    """Run the gateway and the streams."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--streams", type=int, default=500)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--reloads", type=int, default=3, help="while the streams run")
    given = options.parse_args()
    model_port, port = free_port(), free_port()
    upstream = f"http://{HOST}:{model_port}/v1"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "callwright.toml"
        _write(path, upstream, given.workers, [OLD], [MODEL])
        command = [str(Path(sys.executable).with_name("callwright")), "serve", "--config", str(path)]
        model = [sys.executable, fake_model.__file__, "--port", str(model_port)]
        with started(model, model_port), started([*command, "--port", str(port)], port) as (process, _):
            run(_until_it_works(port, OLD, 8))
            run(_measure(port, process.pid, path, upstream, given))


if __name__ == "__main__":
    main()
