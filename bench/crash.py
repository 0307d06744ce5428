"""Gateways under load while their workers are killed and their PostgreSQL is stopped hard: what comes of it.

    python bench/crash.py [--rounds 3] [--clients 12] [--pace 3.0] [--json]

Starts PostgreSQL from the wheel `pgserver`, a model server that takes its time, and two gateways of two workers each
before them. Clients ask for responses all the time: whole, streamed, and in the background; each goes on from its last
one. In each round a worker is killed, PostgreSQL is stopped as by a power cut and started again, and two workers are
killed meanwhile; there are `--pace` seconds between these. Then it is counted, and the script ends with status 1 where
there is one that must not be:

- lost: a response that a client has seen completed, and that is not there as it was; one in the background that was
  taken, and is not known any more
- 500: an answer with this status. A 503, a broken connection and a stream that breaks off are what a crash looks like
- wrong: any other answer that is not what it must be
- hanging: a request without an end for 60 s, or a response in the background that has not ended 60 s after the load
"""

import argparse
import asyncio
import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import aiohttp
from aiohttp import web

from loading import HOST, chunk, free_port, sse, started

PATIENCE_S: Final = 60.0
PIECES: Final = 10  # of an answer
WORKERS: Final = 2
GATEWAYS: Final = 2
_LOG_LINES: Final = 20
ENDED: Final = ("completed", "failed", "incomplete", "cancelled")
# What a crash may cost a client that it hits, beside a 503.
BROKEN: Final = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError)


@dataclass
class Seen:
    """What clients have seen. `said` are texts by response, of those in the background None."""

    counts: Counter[str] = field(default_factory=Counter)
    said: dict[str, str | None] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def fault(self, kind: str, detail: object) -> None:
        self.counts[kind] += 1
        self.faults.append(f"{kind}: {detail}"[:300])


# --- what is started ---


async def _model(request: web.Request) -> web.StreamResponse:
    """Says the last message again, in pieces."""
    asked = await request.json()
    text = f"You said {asked['messages'][-1]['content']}."
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    pieces = [text[n * len(text) // PIECES : (n + 1) * len(text) // PIECES] for n in range(PIECES)]
    for piece in pieces:
        await asyncio.sleep(random.uniform(0, 0.2))
        await response.write(b"".join(sse(chunk({"content": piece}))))
    await response.write(b"".join(sse(chunk({}, "stop"), "[DONE]")))
    return response


@asynccontextmanager
async def model_server() -> AsyncIterator[str]:
    """A model server, in this process."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _model)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, HOST, port).start()
    try:
        yield f"http://{HOST}:{port}/v1"
    finally:
        await runner.cleanup()


class Postgres:
    """A PostgreSQL of our own, which can be stopped hard."""

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        pgserver: Any = import_module("pgserver")
        self._ctl: Any = import_module("pgserver._commands").pg_ctl
        self._server = pgserver.get_server(folder / "postgres", cleanup_mode="delete")
        self.url: str = self._server.get_uri()

    def crash(self) -> None:
        """As by a power cut: nothing is finished, and the next start has to recover."""
        self._ctl(["-m", "immediate", "stop"], pgdata=self._server.pgdata, user=self._server.system_user)

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def close(self) -> None:
        self._server.cleanup()


def workers_of(gateway: "subprocess.Popen[bytes]") -> list[int]:
    """The processes of a gateway that answer."""
    children = Path(f"/proc/{gateway.pid}/task/{gateway.pid}/children").read_text(encoding="ascii").split()
    return [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def kill_worker(gateway: "subprocess.Popen[bytes]", seen: Seen) -> None:
    """Kill a worker; the gateway starts another."""
    if gateway.poll() is not None:
        seen.fault("wrong", "a gateway has ended")
    elif workers := workers_of(gateway):
        os.kill(random.choice(workers), signal.SIGKILL)
        seen.counts["workers killed"] += 1


# --- clients ---


class Client:
    """Asks one thing after the other, each time whichever gateway."""

    def __init__(self, number: int, urls: list[str], session: aiohttp.ClientSession, seen: Seen) -> None:
        self._name = f"client {number}"
        self._urls = urls
        self._session = session
        self._seen = seen
        self._last: str | None = None

    async def run(self, until: asyncio.Event) -> None:
        """Until it is told to end; what is under way is finished."""
        asked = 0
        while not until.is_set():
            asked += 1
            kind = random.choice(("whole", "streamed", "background"))
            self._seen.counts[f"asked {kind}"] += 1
            try:
                await self._ask(kind, f"{self._name} {asked}")
            except TimeoutError:
                self._seen.fault("hanging", f"{kind} of {self._name}")
            except BROKEN:
                self._seen.counts["connections broken"] += 1
                await asyncio.sleep(0.1)

    async def _ask(self, kind: str, text: str) -> None:
        body: dict[str, Any] = {"model": "any", "input": text, "previous_response_id": self._last}
        body |= {"whole": {}, "streamed": {"stream": True}, "background": {"background": True}}[kind]
        async with self._session.post(f"{random.choice(self._urls)}/v1/responses", json=body) as reply:
            if reply.status == 503:
                self._seen.counts["refused (503)"] += 1
                await asyncio.sleep(0.2)
            elif reply.status != 200:
                self._seen.fault("500" if reply.status == 500 else "wrong", f"{reply.status} {await reply.text()}")
            elif kind == "streamed":
                await self._read(reply, text)
            else:
                self._take(await reply.json(), text, kind)

    async def _read(self, reply: aiohttp.ClientResponse, text: str) -> None:
        last: dict[str, Any] = {}
        async for line in reply.content:
            if line.startswith(b"data: {"):
                last = json.loads(line[6:])
        if last.get("type") == "response.completed":
            self._take(last["response"], text, "streamed")
        elif last.get("type") == "response.failed":
            self._seen.counts["streams failed"] += 1
        elif not last or last["type"].startswith("response."):
            self._seen.counts["streams broken off"] += 1
        else:
            self._seen.fault("wrong", f"a stream ended with {last}")

    def _take(self, response: dict[str, Any], text: str, kind: str) -> None:
        """A response that was acknowledged, and is not to be lost."""
        said = None if kind == "background" else text_of(response)
        if said is not None and said != f"You said {text}.":
            self._seen.fault("wrong", f"{text!r} got {said!r}")
        self._seen.counts[f"acknowledged {kind}"] += 1
        self._seen.said[response["id"]] = said
        if kind != "background":
            self._last = response["id"]


def text_of(response: dict[str, Any]) -> str:
    """What was said."""
    parts = [part for item in response["output"] for part in item.get("content") or ()]
    return "".join(part.get("text", "") for part in parts)


# --- the crashes, and what is left ---


async def crashes(postgres: Postgres, gateways: "list[subprocess.Popen[bytes]]", given: Any, seen: Seen) -> None:
    """All rounds."""
    for _ in range(given.rounds):
        await asyncio.sleep(given.pace)
        kill_worker(random.choice(gateways), seen)
        await asyncio.sleep(given.pace)
        await asyncio.to_thread(postgres.crash)
        seen.counts["PostgreSQL stopped"] += 1
        await asyncio.sleep(given.pace / 2)
        for gateway in gateways:
            kill_worker(gateway, seen)
        await asyncio.sleep(given.pace / 2)
        await asyncio.to_thread(postgres.start)
    await asyncio.sleep(given.pace)


async def check(urls: list[str], session: aiohttp.ClientSession, seen: Seen) -> None:
    """Ask for all that was acknowledged, until it has ended or the patience is over."""
    begun = time.monotonic()
    left = dict(seen.said)
    while left and time.monotonic() - begun < PATIENCE_S:
        for id_, said in [*left.items()]:
            try:
                async with session.get(f"{random.choice(urls)}/v1/responses/{id_}") as reply:
                    body = await reply.json()
            except (TimeoutError, *BROKEN):
                continue
            if reply.status == 503:
                continue
            if reply.status != 200:
                seen.fault("500" if reply.status == 500 else "lost", f"{id_}: {reply.status}")
            elif body["status"] not in ENDED:
                continue
            elif said is None:
                seen.counts[f"background {body['status']}"] += 1
            elif body["status"] != "completed" or text_of(body) != said:
                seen.fault("lost", f"{id_}: {body['status']}, {text_of(body)!r} instead of {said!r}")
            del left[id_]
        await asyncio.sleep(0.2)
    seen.counts["seconds until all had ended"] = round(time.monotonic() - begun)
    for id_ in left:
        seen.fault("hanging", id_)


async def played(given: Any, folder: Path) -> Seen:
    """All of it."""
    seen = Seen()
    random.seed(given.seed)
    logging.getLogger("aiohttp.server").disabled = True  # connections of killed workers break
    postgres = await asyncio.to_thread(Postgres, folder)
    try:
        async with model_server() as model:
            config = folder / "callwright.toml"
            config.write_text(
                f'[server]\nworkers = {WORKERS}\nlog_level = "error"\n[store]\nurl = "{postgres.url}"\n'
                f'[[models]]\nname = "*"\nupstream = "{model}"\nmode = "native"\n'
            )
            with ExitStack() as running:
                ports = [free_port() for _ in range(GATEWAYS)]
                command = [str(Path(sys.executable).parent / "callwright"), "serve", "--config", str(config), "--port"]
                logs = folder / "gateway.log"
                gateways = []
                for number, port in enumerate(ports):
                    log = logs.with_suffix(f".{number}")
                    start = started([*command, str(port)], port, output=log)
                    process, _ = await asyncio.to_thread(running.enter_context, start)
                    gateways.append(process)
                    while b"OPENAI_BASE_URL" not in log.read_bytes():  # it is said when all workers serve
                        await asyncio.sleep(0.05)
                urls = [f"http://{HOST}:{port}" for port in ports]
                timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
                async with aiohttp.ClientSession(timeout=timeout) as session:
                    over = asyncio.Event()
                    clients = [Client(number, urls, session, seen).run(over) for number in range(given.clients)]
                    asking = asyncio.gather(*clients)
                    await crashes(postgres, gateways, given, seen)
                    over.set()
                    await asking
                    await check(urls, session, seen)
                if seen.faults:
                    for log in sorted(folder.glob("gateway.*")):
                        lines = log.read_text(errors="replace").splitlines()
                        told = [
                            line
                            for line in lines
                            if "/v1/responses" in line and " failed: " in line and " refused: " not in line
                        ]
                        seen.faults.append("\n".join([f"{log.name}:", *told[:_LOG_LINES]]))
    finally:
        await asyncio.to_thread(postgres.close)
    return seen


def main() -> None:
    """Play it and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--clients", type=int, default=12)
    options.add_argument("--pace", type=float, default=3.0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    with TemporaryDirectory(prefix="callwright-crash-", ignore_cleanup_errors=True) as folder:
        seen = asyncio.run(played(given, Path(folder)))
    counts = {name: seen.counts[name] for name in (*sorted(seen.counts.keys() - MUST_NOT_BE), *MUST_NOT_BE)}
    if given.json:
        print(json.dumps({"counts": counts, "faults": seen.faults}))
    else:
        for name, number in counts.items():
            print(f"  {name:28}{number:>8,}")
        print("\n".join(seen.faults[:20]))
    raise SystemExit(1 if seen.faults else 0)


MUST_NOT_BE: Final = ("lost", "500", "wrong", "hanging")


if __name__ == "__main__":
    main()
