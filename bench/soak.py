"""Thousands of streams at once through one gateway, over a model server and with clients that misbehave in every way.

    python bench/soak.py [--streams 2000] [--waves 3] [--seed 1] [--json]

Starts `callwright serve` and `bench/faulty.py` in processes of their own, then sends waves of requests: all of a wave
are under way at once before the first of them goes on. Beside them WebSockets are open, silent ones all the time and
some in each wave that send what means nothing. What is asked over which API, streamed or whole, in which mode,
and of one server or of two of which one is dead, is drawn by the seed; how many requests meet which behaviour stands in
`MIX`. Behind the waves come clients that read nothing of an endless answer, and a last wave with SIGTERM in its middle.
It ends with status 1 and what was wrong, if anything was:

- every stream that is read to its end ends in its last event, every other answer has a status and a body; good answers
  are the ones that were sent, bad ones are errors
- while a wave is under way one request more gets a 429 with `retry-after`, which is counted, and `/metrics` answers
- behind each wave the gateway holds as many file descriptors and tasks as before, and no request is under way, at the
  gateway or at the model server
- its memory does not grow with the waves, nor with what an endless answer has for a client that does not read
- at SIGTERM what is under way ends properly within `drain_s`, nothing new is taken, and the exit status is 0
"""

import argparse
import asyncio
import json
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from faulty import SCRIPTS
from loading import HOST, cpu_s, free_port, memory_mb, started
from manners import Broken, Client, Manner, Outcome, Wave, ask, fetch
from sockets import flooding, held, last_words

# Of a hundred requests: how many meet which play of the model server, from which kind of client.
MIX: Final[tuple[tuple[int, str, Manner], ...]] = (
    *((4, "closes behind it", "reads"), (4, "closes when asked again", "reads")),
    *((5, "text", "reads"), (16, "call", "reads"), (8, "slow", "reads"), (5, "quiet", "reads"), (6, "long", "slowly")),
    *((3, "stall", "reads"), (3, "headers, then nothing", "reads"), (3, "silent", "reads"), (3, "late", "reads")),
    *((5, "reset", "reads"), (5, "closed without end", "reads"), (4, "half an event", "reads")),
    *((3, "garbage", "reads"), (2, "no HTTP", "reads"), (2, "invalid UTF-8", "reads"), (3, "invalid JSON", "reads")),
    *((2, "HTML page", "reads"), (2, "status 500", "reads"), (2, "status 429", "reads"), (2, "status 503", "reads")),
    *((1, "endless line", "reads"), (3, "slow", "leaves midway"), (2, "slow", "leaves early")),
    *((1, "slow", "half a request"), (1, "slow", "stays")),
)
MODES: Final = {
    "native": "mode = 'native'",
    "prompt": "dialect = 'hermes'",
    "raw": "mode = 'raw'\ndialect = 'hermes'\nserver = 'vllm'",
}
OUTCOMES: Final[tuple[Outcome, ...]] = ("answered", "error event", "error status", "left")
NEVER_ARRIVE: Final[tuple[Manner, ...]] = ("half a request", "stays")
LEAVE: Final[tuple[Manner, ...]] = ("leaves midway", "leaves early", "half a request")
MORE: Final = 20  # requests above the limit
SILENT: Final = 50  # WebSockets
FLOODING: Final = 2
# Bounds. The least that a later wave leaves may be so much more than what the first one left; what has settled must
# have done so by then; an answer that nobody reads may take so much of the gateway's memory.
GROWTH_MB: Final = 12.0
SETTLED_S: Final = 20.0
UNREAD_MB: Final = 6.0
# Beside the waits that are meant: how long anything may take.
PATIENCE_S: Final = 30.0
HERE: Final = Path(__file__).resolve().parent


# The command `callwright` that waits for less long than it does otherwise.
HASTY = "from callwright.settings import bounds; vars(bounds).update({}); from callwright.cli import main; main()"


class Fault(Exception):  # noqa: N818  # what the script looks for
    """What was not as it must be."""


class Options(NamedTuple):
    """`streams` in each of `waves`."""

    streams: int
    waves: int
    seed: int

    @property
    def idle_s(self) -> float:
        """The time-out for a silent model server: long enough to get a whole wave under way."""
        return 2 + self.streams / 100

    @property
    def drain_s(self) -> float:
        """How long the gateway may go on at SIGTERM: less than what stalls."""
        return self.idle_s / 2


class Idle(NamedTuple):
    """What a gateway holds that has nothing to do but to say so."""

    in_flight: float
    tasks: float
    descriptors: float


class Measured(NamedTuple):
    """One wave. The seconds are those from its first request to its last end."""

    before_mb: float
    peak_mb: float
    after_mb: float
    cpu_s: float
    seconds: float


@dataclass
class Report:
    """What was found. `counts`: outcomes by row; `faults`: what was not as it must be, which is nothing."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    waves: list[Measured] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def count(self, client: Client, outcome: str) -> None:
        """Note what came of a request: an outcome, or what was wrong."""
        known = outcome if outcome in OUTCOMES else "broken"
        self.counts.setdefault(client.row, Counter())[known] += 1
        if known == "broken":
            who = f"{client.row}, {client.api} {'streamed' if client.stream else 'whole'}, model {client.model}"
            self.faults.append(f"{who}, number {client.number}: {outcome}")


def clients(options: Options) -> list[Client]:
    """The requests of a wave."""
    rows = [row for row in MIX for _ in range(row[0])]
    dice = random.Random(options.seed)
    made = [_client(dice, number, *rows[number % len(rows)][1:]) for number in range(options.streams)]
    dice.shuffle(made)
    return made


def _is_hasty(client: Client) -> bool:
    """Whether a time-out of the gateway runs from its beginning on: such requests come last in a wave."""
    return client.manner in NEVER_ARRIVE or SCRIPTS[client.play][0] != "head"


def _client(dice: random.Random, number: int, play: str, manner: Manner) -> Client:
    row = play if manner in ("reads", "slowly") else f"client {manner}"
    stream = manner in ("leaves midway", "unread") or dice.random() < 0.7
    model = dice.choice(list(MODES)) + dice.choice(("", "", "-of-two"))
    return Client(number, row, play, manner, dice.choice(("chat", "responses")), model, stream)


# --- the two servers ---


def _configuration(options: Options, upstream: int, dead: int, folder: Path) -> str:
    """One model for each mode, and one more with a second server, which does not listen."""
    idle_s = options.idle_s
    lines = [f"[server]\nmax_requests = {options.streams}\ndrain_s = {options.drain_s}\nlog_level = 'warning'"]
    lines += [f"[store]\nurl = 'sqlite:///{folder}/responses.db'"]
    url, none = f"http://{HOST}:{upstream}/v1", f"http://{HOST}:{dead}/v1"
    for mode, how in MODES.items():
        for name, upstreams in ((mode, [url]), (f"{mode}-of-two", [none, url])):
            # On a machine that is busy with other things two thousand requests at once take longer than the usual 10 s.
            waits = f"idle_timeout_s = {idle_s}\nconnect_timeout_s = {PATIENCE_S * 4}"
            lines.append(f"[[models]]\nname = '{name}'\nupstream = {upstreams}\n{waits}\n{how}")
    return "\n".join(lines)


class Soaked:
    """The gateway and the model server behind it, watched from outside."""

    def __init__(self, gateway: subprocess.Popen[bytes], port: int, upstream: int, log: Path) -> None:
        self.gateway = gateway
        self.port = port
        self._upstream = upstream
        self._log = log
        self.peak_mb = 0.0

    def memory_mb(self) -> float:
        """MB that the gateway holds now."""
        now = memory_mb(self.gateway.pid)
        self.peak_mb = max(self.peak_mb, now)
        return now

    async def numbers(self) -> dict[str, float]:
        """What `/metrics` says, by name and labels."""
        reply = await fetch(self.port, "/metrics")
        if reply.status != 200:
            raise Fault(f"/metrics answers {reply.status}: {reply.body[:200]!r}")
        lines = [line.rpartition(" ") for line in reply.body.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}

    async def idle(self) -> Idle:
        """What the gateway holds now; the connection that asks is in it."""
        numbers = await self.numbers()
        names = ("callwright_requests_in_flight", "callwright_tasks", "process_open_fds")
        return Idle(*(numbers[name] for name in names))

    async def board(self) -> dict[str, Any]:
        """What the model server says is under way."""
        found: dict[str, Any] = json.loads((await fetch(self._upstream, "/board")).body)
        return found

    async def tell(self, what: str) -> None:
        """Tell the model server to do something."""
        await fetch(self._upstream, f"/{what}", "POST")

    def logged(self) -> list[str]:
        """What the gateway has said of failures of its own."""
        return [line for line in self._log.read_text(errors="replace").splitlines() if _is_failure(line)]


def _is_failure(line: str) -> bool:
    return "Traceback" in line or " ERROR " in line or "Error:" in line or "never retrieved" in line


@asynccontextmanager
async def _serving(options: Options, folder: Path) -> AsyncIterator[Soaked]:
    port, upstream = free_port(), free_port()
    config = folder / "callwright.toml"
    fake = [sys.executable, str(HERE / "faulty.py"), "--port", str(upstream), "--idle", str(options.idle_s)]
    waits = {"HEARTBEAT_S": options.idle_s / 5, "STALL_S": options.idle_s, "RECEIVE_S": options.idle_s}
    command = [sys.executable, "-c", HASTY.format(waits), "serve", "--config", str(config), "--port", str(port)]
    log = folder / "gateway.log"
    with socket.socket() as dead:
        dead.bind((HOST, 0))  # so that nobody else listens there
        config.write_text(_configuration(options, upstream, dead.getsockname()[1], folder))
        with started(fake, upstream), started(command, port, output=log) as (gateway, _):
            yield Soaked(gateway, port, upstream, log)


def _raise_limit(descriptors: int) -> None:
    """So many files may be open, in this process and those that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < descriptors:
        raise SystemExit(f"{descriptors} file descriptors are needed, the system allows {hard}: raise `ulimit -Hn`")
    if soft != resource.RLIM_INFINITY and soft < descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))


# --- the waves ---


async def _until(holds: Callable[[], Awaitable[bool]], patience_s: float) -> bool:
    """Whether something comes to hold in time. Asking takes little of the time that it takes."""
    until = time.monotonic() + patience_s
    while True:
        began = time.monotonic()
        if await holds():
            return True
        if time.monotonic() > until:
            return False
        await asyncio.sleep(min(1.0, max(0.1, 8 * (time.monotonic() - began))))


class Soak:
    """One run."""

    def __init__(self, options: Options, soaked: Soaked) -> None:
        self._options = options
        self._soaked = soaked
        self._wave = 0
        self.report = Report()

    async def run(self) -> None:
        """All of it. Raises `Fault` where it makes no sense to go on."""
        made = clients(self._options)
        await self._warm(made)
        async with held(self._soaked.port, SILENT) as silent:
            idle = await self._soaked.idle()
            for _ in range(self._options.waves):
                await self._measured(made, idle)
            self._judge_memory()
            await self._unread(idle)
            ended = asyncio.create_task(last_words(silent, PATIENCE_S + 20 * self._options.idle_s))
            await self._drained(made)
            if (told := await ended) != {"shutting_down"}:
                self.report.faults.append(f"at SIGTERM silent WebSockets should be told of it, not {told}")
        self.report.faults += self._soaked.logged()[:5]

    async def _warm(self, made: list[Client]) -> None:
        """Two requests to each model, so that what is made once is there."""
        models = {(client.api, client.model): client for client in made if client.play in ("text", "call")}
        wave = self._next_wave()
        await self._soaked.tell(f"gate/{wave.number}")
        for client in models.values():
            outcome = await client.run(wave)
            if outcome != "answered":
                raise Fault(f"model {client.model} does not answer: {outcome}")
        await self._soaked.tell("hangup")

    def _next_wave(self) -> Wave:
        self._wave += 1
        return Wave(self._wave, self._soaked.port)

    async def _measured(self, made: list[Client], idle: Idle) -> None:
        """A whole wave, and what it leaves."""
        soaked, began = self._soaked, time.monotonic()
        cpu, before_mb = cpu_s(soaked.gateway.pid), soaked.memory_mb()
        soaked.peak_mb = 0.0
        async with self._under_way(made) as running:
            outcomes = await self._outcomes(running)
        seconds = time.monotonic() - began
        for client, outcome in zip(made, outcomes, strict=True):
            self.report.count(client, outcome)
        await self._settle(idle, f"wave {self._wave}")
        used = cpu_s(soaked.gateway.pid) - cpu
        self.report.waves.append(Measured(before_mb, soaked.peak_mb, soaked.memory_mb(), used, seconds))

    @asynccontextmanager
    async def _under_way(self, made: list[Client]) -> AsyncIterator[list[asyncio.Task[str]]]:
        """A wave whose gate has just been opened."""
        soaked, wave = self._soaked, self._next_wave()
        others = asyncio.Event()

        async def run(client: Client) -> str:
            if _is_hasty(client):
                await others.wait()
            return await client.run(wave)

        running = [asyncio.create_task(run(client)) for client in made]
        watching = [asyncio.create_task(self._watch())]
        watching += [asyncio.create_task(flooding(soaked.port)) for _ in range(FLOODING)]
        try:
            await self._full(wave, [client for client in made if not _is_hasty(client)])
            others.set()
            await self._full(wave, made)
            await self._more_than_the_limit(made)
            wave.leaving.set()
            await self._freed(len(made) - sum(client.manner in LEAVE for client in made))
            await soaked.tell(f"gate/{wave.number}")
            yield running
        finally:
            for task in (*watching, *running):
                task.cancel()
            await asyncio.gather(*watching, *running, return_exceptions=True)

    async def _outcomes(self, running: list[asyncio.Task[str]]) -> list[str]:
        """What came of each request of a wave. As long as some end, there is no hurry."""
        patience_s = 2 * self._options.idle_s + PATIENCE_S
        left, before = set(running), len(running) + 1
        while left and len(left) < before:
            before = len(left)
            _, left = await asyncio.wait(left, timeout=patience_s)
        return [f"no end came for {patience_s:g} s" if task in left else task.result() for task in running]

    async def _watch(self) -> None:
        while True:
            self._soaked.memory_mb()
            await asyncio.sleep(0.1)

    async def _full(self, wave: Wave, made: list[Client]) -> None:
        """Wait until all of a wave are under way."""
        arriving = sum(client.manner not in NEVER_ARRIVE for client in made)
        found = [(0.0, 0)]

        async def full() -> bool:
            arrived = (await self._soaked.board())["arrived"].get(str(wave.number), 0)
            found.append(((await self._soaked.idle()).in_flight - 1, arrived))
            return found[-1] == (len(made), arriving)

        while not await _until(full, PATIENCE_S):
            if found[-1] <= found[0]:
                there = f"{found[-1][1]} of {arriving} at the model server"
                raise Fault(f"not all came under way: {found[-1][0]:g} of {len(made)} in the gateway, {there}")
            found[:] = found[-1:]

    async def _more_than_the_limit(self, made: list[Client]) -> None:
        """Requests above `max_requests` are refused, and counted."""
        before = await self._refused()
        replies = await asyncio.gather(*(ask(client, self._wave, self._soaked.port) for client in made[:MORE]))
        told = Counter((reply.status, "retry-after" in reply.headers) for reply in replies)
        if told != {(429, True): MORE}:
            self.report.faults.append(f"above max_requests, (status, has retry-after) should be 429, not {dict(told)}")
        if (counted := await self._refused() - before) != MORE:
            self.report.faults.append(f"{MORE} requests were refused, /metrics counts {counted:g}")

    async def _refused(self) -> float:
        numbers = await self._soaked.numbers()
        return sum(number for name, number in numbers.items() if _is_refusal(name))

    async def _freed(self, left: int) -> None:
        """Wait until those that have left hold no place any more."""
        if not await _until(lambda: self._has_in_flight(left), SETTLED_S):
            found = (await self._soaked.idle()).in_flight - 1
            self.report.faults.append(f"{found - left:g} clients have left, and their requests are still under way")

    async def _has_in_flight(self, number: int) -> bool:
        return (await self._soaked.idle()).in_flight - 1 == number

    async def _settle(self, idle: Idle, when: str) -> None:
        """Wait until the gateway holds no more than when it was idle: connections that it keeps are closed for it."""
        await self._soaked.tell("hangup")
        found: list[Any] = []

        async def settled() -> bool:
            found[:] = [await self._soaked.idle(), (await self._soaked.board())["playing"]]
            return all(map(float.__le__, found[0], idle)) and not found[1]

        if not await _until(settled, SETTLED_S):
            what = f"{found[0]}, before it was {idle}; the model server still answers {found[1]}"
            self.report.faults.append(f"behind {when} the gateway holds {what}")

    def _judge_memory(self) -> None:
        """What leaks is more behind every wave; what the allocator gives back is now more, now less."""
        first, *others = self.report.waves
        if others and (grown := min(wave.after_mb for wave in others) - first.after_mb) > GROWTH_MB:
            self.report.faults.append(f"every later wave leaves {grown:.0f} MB more than wave 1, or more than that")

    # --- back-pressure ---

    async def _unread(self, idle: Idle) -> None:
        """Endless answers that nobody reads: they stand still, and are given up after `STALL_S`."""
        soaked, wave = self._soaked, self._next_wave()
        dice, number = random.Random(self._options.seed), max(12, self._options.streams // 50)
        made = [_client(dice, each, "flood", "unread") for each in range(number)]
        before_mb, flooded = soaked.memory_mb(), [-1]
        running = [asyncio.create_task(client.run(wave)) for client in made]

        async def still() -> bool:
            flooded.append((await soaked.board())["flooded"])
            return flooded[-1] > 0 and len(flooded) > 5 and flooded[-1] == flooded[-5]

        if not await _until(still, PATIENCE_S):
            self.report.faults.append(f"the model server still writes to {number} clients that do not read")
        each_mb = (soaked.memory_mb() - before_mb) / number
        sent_mb = flooded[-1] / number / 1e6
        if each_mb > UNREAD_MB:
            self.report.faults.append(f"an answer that nobody reads takes {each_mb:.1f} MB of the gateway")
        if not await _until(lambda: self._has_in_flight(0), 2 * self._options.idle_s + SETTLED_S):
            self.report.faults.append("clients that read nothing are not given up")
        wave.leaving.set()
        self.report.faults += [ended for ended in await self._outcomes(running) if ended != "left"]
        await self._settle(idle, "clients that read nothing")
        taken = f"{sent_mb:.1f} MB each were taken from the model server, {max(0.0, each_mb):.2f} MB each held"
        self.report.notes.append(f"{number} endless answers that nobody reads: {taken}, given up after STALL_S")

    # --- the end ---

    async def _drained(self, made: list[Client]) -> None:
        """A wave with SIGTERM in its middle."""
        soaked, drain_s = self._soaked, self._options.drain_s
        async with self._under_way(made) as running:
            await asyncio.sleep(drain_s / 4)
            soaked.gateway.send_signal(signal.SIGTERM)
            began = time.monotonic()
            await self._refuses(made)
            outcomes = await self._outcomes(running)
            told_s = time.monotonic() - began
            if not await _until(self._has_ended, SETTLED_S):
                raise Fault("the gateway does not end")
        for client, outcome in zip(made, outcomes, strict=True):
            self._judge_drained(client, outcome)
        ended = Counter(outcome for outcome in outcomes if outcome in OUTCOMES)
        if told_s > drain_s + SETTLED_S:
            self.report.faults.append(f"drain_s is {drain_s:g}, and the last answer ended after {told_s:.1f} s")
        if (status := soaked.gateway.returncode) != 0:
            self.report.faults.append(f"the gateway has ended with status {status}")
        counts = ", ".join(f"{ended[outcome]} {outcome}" for outcome in OUTCOMES)
        self.report.notes.append(f"SIGTERM in a wave: all ended after {told_s:.1f} s (drain_s {drain_s:g}): {counts}")

    def _judge_drained(self, client: Client, outcome: str) -> None:
        """What did not come to its end in time is an error, also of a good answer."""
        if outcome not in OUTCOMES and "an answer was to come" not in outcome:
            self.report.faults.append(f"at SIGTERM, {client.row}, {client.api}, {client.model}: {outcome}")

    async def _refuses(self, made: list[Client]) -> None:
        async def draining() -> bool:
            return (await fetch(self._soaked.port, "/healthz")).status == 503

        if not await _until(draining, PATIENCE_S):
            self.report.faults.append("the gateway does not say that it drains")
        replies = await asyncio.gather(*(ask(client, self._wave, self._soaked.port) for client in made[:MORE]))
        if (told := Counter(reply.status for reply in replies)) != {503: MORE}:
            self.report.faults.append(f"at SIGTERM new requests should get 503, not {dict(told)}")

    async def _has_ended(self) -> bool:
        return self._soaked.gateway.poll() is not None


def _is_refusal(name: str) -> bool:
    return name.startswith("callwright_requests_total{") and 'endpoint="other"' in name and 'status="429"' in name


# --- what is shown ---


def _lines(options: Options, report: Report) -> Iterator[str]:
    """The report, for people."""
    yield f"{options.waves} waves of {options.streams} requests, all under way at once, seed {options.seed}"
    yield f"{'':24}" + "".join(f"{head:>14}" for head in ("requests", *OUTCOMES))
    for row in dict.fromkeys(_client(random.Random(), 0, play, manner).row for _, play, manner in MIX):
        counts = report.counts.get(row, Counter())
        yield f"{row:24}" + "".join(f"{count:>14,}" for count in (counts.total(), *(counts[one] for one in OUTCOMES)))
    total = sum(report.counts.values(), Counter())
    yield f"{'all':24}" + "".join(f"{count:>14,}" for count in (total.total(), *(total[one] for one in OUTCOMES)))
    heads = ("MB before", "peak", "after", "seconds", "CPU s", "per CPU s")
    yield f"{'gateway':24}" + "".join(f"{head:>12}" for head in heads)
    for number, wave in enumerate(report.waves, 1):
        cells = [f"{mb:.0f}" for mb in (wave.before_mb, wave.peak_mb, wave.after_mb)]
        cells += [f"{wave.seconds:.1f}", f"{wave.cpu_s:.1f}", f"{options.streams / wave.cpu_s:,.0f}"]
        yield f"wave {number:<19}" + "".join(f"{cell:>12}" for cell in cells)
    yield from report.notes


async def soak(options: Options) -> Report:
    """Run it."""
    with TemporaryDirectory() as folder:
        async with _serving(options, Path(folder)) as soaked:
            run = Soak(options, soaked)
            try:
                await run.run()
            except (Fault, Broken) as fault:
                run.report.faults.append(str(fault))
            return run.report


def main() -> int:
    """Run, print, and say with the status whether all was as it must be."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--streams", type=int, default=2_000, help="in a wave")
    given.add_argument("--waves", type=int, default=3)
    given.add_argument("--seed", type=int, default=1)
    given.add_argument("--json", action="store_true", help="print counts and faults as one JSON object")
    asked = given.parse_args()
    options = Options(asked.streams, asked.waves, asked.seed)
    _raise_limit(4 * options.streams + 500)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the servers with it
    report = asyncio.run(soak(options))
    if asked.json:
        print(json.dumps({"counts": report.counts, "notes": report.notes, "faults": report.faults}))
    else:
        print("\n".join(_lines(options, report)))
        shown = report.faults[:20]
        print("\n".join(["", *shown, f"{len(report.faults)} faults"] if shown else ["nothing was wrong"]))
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
