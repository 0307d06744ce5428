"""A model in this process, compared with llama.cpp's own server: the same file, the same settings, in turn.

    python bench/embedded.py MODEL.gguf [--rounds 5] [--tokens 48] [--words 150] [--json]

Ours is a whole turn: prompt, engine, parser, events. The server is llama.cpp's, over HTTP, in a process of its own,
with its own batch sizes; its client only decodes the JSON of each event. Both get the same prompts, each new to both,
and each round asks one after the other, in changing order. Ratios above 1 are in our favour, and the median of the
rounds' own.

`tokens_per_s`: of all streams together, from the first text of the last one; `first_s`: the wait for the first text;
`client_us`: the CPU of our process for each token, without the engine's own threads (for the server that is the HTTP
client's). `evaluated`: the tokens of a prompt that the engine had to read; `others`: for the second turns of twice as
many conversations as there are slots. `after_cancel_s`: the wait for the first text when all slots were generating and
their clients have just gone. `MB`: memory of the process of the engine, at the end.
"""

import argparse
import asyncio
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import psutil

from callwright.conversation import Conversation, Item, Message, TextPart
from callwright.dialects.base import get_dialect
from callwright.events import ContentDelta, Usage
from callwright.gateway.config.build_models import build_models
from callwright.gateway.config.config import Config, ModelConfig
from callwright.turn.model import Model
from callwright.turn.run import run_turn
from callwright.turn.streams import each
from callwright.upstreams.embedded.engine import EngineOptions
from loading import free_port

SLOTS: Final = 4
OPTIONS: Final = EngineOptions(slots=SLOTS)
TODAY: Final = "2026-01-01"
LONG: Final = 2_000
FIELDS: Final = {"temperature": 0, "ignore_eos": True}
# Started with the file and the room for tokens; prints its address, and ends with its parent.
SERVER: Final = """
import sys, xllamacpp
asked = xllamacpp.CommonParams()
asked.model.path, asked.n_ctx, asked.n_parallel = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
asked.kv_unified, asked.port, asked.verbosity, asked.ui = True, int(sys.argv[4]), 1, False
server = xllamacpp.Server(asked)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


class Answer(NamedTuple):
    """One stream: when it was asked, its texts and when each arrived, and the counts of the engine."""

    asked_s: float
    texts_s: list[float]
    text: str
    tokens: int
    evaluated: int


class Engine(Protocol):
    """One of the two."""

    def ask(self, asked: Sequence[Conversation], tokens: int) -> list[Answer]:
        """The answers to parallel conversations."""
        ...

    def leave(self, asked: Sequence[Conversation]) -> None:
        """Begin answers and leave each at its first text."""
        ...

    def client_s(self) -> float:
        """The CPU of all threads of ours that ask."""
        ...

    def memory_mb(self) -> float:
        """Memory of the process of the engine."""
        ...


def conversation(number: int, words: int, *turns: str) -> Conversation:
    """A prompt that no other begins like; `turns` are answers, each with a further question."""
    text = " ".join("river stone cloud lamp".split()[(number + n) % 4] for n in range(words))
    items: list[Item] = [Message("user", (TextPart(f"{number:09} {text}\nWhat is this about?"),))]
    for turn in turns:
        items += [Message("assistant", (TextPart(turn),)), Message("user", (TextPart("Say more."),))]
    return Conversation(tuple(items))


def memory_mb(pid: int) -> float:
    return float(psutil.Process(pid).memory_full_info().uss) / 1e6


class Ours:
    """A turn in this process."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._runner = asyncio.Runner()
        self._runner.run(model.upstream.open())

    def ask(self, asked: Sequence[Conversation], tokens: int) -> list[Answer]:
        return self._runner.run(self._all(asked, tokens))

    def leave(self, asked: Sequence[Conversation]) -> None:
        self._runner.run(self._left(asked))

    def client_s(self) -> float:
        of_engine = [thread for thread in threading.enumerate() if thread.name.startswith("llama.cpp")]
        return time.thread_time() + sum(
            time.clock_gettime(time.pthread_getcpuclockid(thread.ident)) for thread in of_engine if thread.ident
        )

    def memory_mb(self) -> float:
        return memory_mb(os.getpid())

    async def _all(self, asked: Sequence[Conversation], tokens: int) -> list[Answer]:
        return await asyncio.gather(*(self._one(one, tokens) for one in asked))

    async def _one(self, asked: Conversation, tokens: int) -> Answer:
        begun, usage, texts, texts_s = time.perf_counter(), Usage(), list[str](), list[float]()
        events = run_turn(self._model, asked, {**FIELDS, "max_tokens": tokens}, today=TODAY)
        async with aclosing(each(events)) as found:
            async for event in found:
                if isinstance(event, ContentDelta):
                    texts_s.append(time.perf_counter())
                    texts.append(event.text)
                elif isinstance(event, Usage):
                    usage = event
        evaluated = usage.prompt_tokens - usage.cached_tokens
        return Answer(begun, texts_s, "".join(texts), usage.completion_tokens, evaluated)

    async def _left(self, asked: Sequence[Conversation]) -> None:
        turns = [each(run_turn(self._model, one, {**FIELDS, "max_tokens": LONG}, today=TODAY)) for one in asked]
        await asyncio.gather(*map(anext, turns))
        await asyncio.gather(*(turn.aclose() for turn in turns))


class Theirs:
    """llama.cpp's server and a client that does no more than it must. `prompt` renders a conversation."""

    def __init__(self, path: Path, prompt: Callable[[Conversation], dict[str, Any]]) -> None:
        command = [sys.executable, "-c", SERVER, str(path), str(OPTIONS.context_tokens), str(SLOTS), str(free_port())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._at = urlsplit(self._process.stdout.readline().strip())
        self._prompt = prompt
        self._client_s = 0.0
        self._threads = ThreadPoolExecutor(SLOTS)

    def ask(self, asked: Sequence[Conversation], tokens: int) -> list[Answer]:
        return list(self._threads.map(lambda one: self._one(one, tokens), asked))

    def leave(self, asked: Sequence[Conversation]) -> None:
        list(self._threads.map(lambda one: next(self._pieces(one, LONG)), asked))

    def client_s(self) -> float:
        return self._client_s

    def memory_mb(self) -> float:
        return memory_mb(self._process.pid)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _one(self, asked: Conversation, tokens: int) -> Answer:
        begun, cpu = time.perf_counter(), time.thread_time()
        texts, texts_s, last = list[str](), list[float](), dict[str, Any]()
        for last in self._pieces(asked, tokens):
            if last["content"]:
                texts_s.append(time.perf_counter())
                texts.append(last["content"])
        self._client_s += time.thread_time() - cpu
        evaluated = last["timings"]["prompt_n"]
        return Answer(begun, texts_s, "".join(texts), last["tokens_predicted"], evaluated)

    def _pieces(self, asked: Conversation, tokens: int) -> Iterator[dict[str, Any]]:
        body = {**FIELDS, **self._prompt(asked), "n_predict": tokens, "stream": True}
        with closing(http.client.HTTPConnection(self._at.hostname or "", self._at.port)) as connection:
            connection.request("POST", "/completion", json.dumps(body), {"content-type": "application/json"})
            with connection.getresponse() as response:
                for line in response:
                    if line.startswith(b"data: "):
                        yield json.loads(line[6:])


class Sample(NamedTuple):
    """Parallel streams. `client_us` is the CPU for each token."""

    tokens_per_s: float
    first_s: float
    client_us: float


def sample(engine: Engine, asked: Sequence[Conversation], tokens: int) -> Sample:
    cpu = engine.client_s()
    answers = engine.ask(asked, tokens)
    count = sum(answer.tokens for answer in answers)
    cpu = engine.client_s() - cpu
    begun = max(answer.texts_s[0] for answer in answers)  # before it, the engine reads prompts
    later = [at for answer in answers for at in answer.texts_s if at > begun]
    firsts = [answer.texts_s[0] - answer.asked_s for answer in answers]
    return Sample(len(later) / (max(later) - begun), median(firsts), cpu / count * 1e6)


def compare(engines: Mapping[str, Engine], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows, one for each number of streams and engine."""
    number = 0
    for streams in (1, SLOTS):
        samples: dict[str, list[Sample]] = {name: [] for name in engines}
        for turn in range(options.rounds + 1):
            asked = [conversation(number := number + 1, options.words) for _ in range(streams)]
            for name in sorted(engines, reverse=bool(turn % 2)):
                found = sample(engines[name], asked, options.tokens)
                if turn:  # the first round warms up
                    samples[name].append(found)
        pairs = list(zip(samples["ours"], samples["server"], strict=True))
        for name, found_ in samples.items():
            row: dict[str, str | float] = {"streams": streams, "engine": name}
            row |= {field: median(getattr(one, field) for one in found_) for field in Sample._fields}
            if name == "ours":
                row["ratio"] = median(ours.tokens_per_s / theirs.tokens_per_s for ours, theirs in pairs)
                row["first_ratio"] = median(theirs.first_s / ours.first_s for ours, theirs in pairs)
            yield row


def turns(engine: Engine, options: argparse.Namespace) -> dict[str, Any]:
    """The tokens that a second turn evaluates, and the wait for a slot after all were left."""
    first = engine.ask([conversation(-1, options.words)], options.tokens)[0]
    second = engine.ask([conversation(-1, options.words, first.text)], options.tokens)[0]
    many = [conversation(-50 - n, options.words) for n in range(2 * SLOTS)]
    answers = [engine.ask([one], 4)[0].text for one in many]
    others = [
        engine.ask([conversation(-50 - n, options.words, text)], 4)[0].evaluated for n, text in enumerate(answers)
    ]
    engine.leave([conversation(-2 - n, options.words) for n in range(SLOTS)])
    after = engine.ask([conversation(-9, options.words)], 4)[0]
    return {
        "first_turn_evaluated": first.evaluated,
        "second_turn_evaluated": second.evaluated,
        "others_evaluated": others,
        "after_cancel_s": after.texts_s[0] - after.asked_s,
        "MB": engine.memory_mb(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--dialect", default="hermes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--words", type=int, default=150)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    config = ModelConfig(name="m", upstream=str(options.model), dialect=options.dialect, retries=0, engine=OPTIONS)
    model = build_models(Config(models=(config,)))["m"]
    dialect = get_dialect(options.dialect)

    def prompt(asked: Conversation) -> dict[str, Any]:
        rendered = dialect.render(asked, model.options)
        return {"prompt": rendered.wire_text, "preserved_tokens": rendered.marks, "stop": dialect.stops}

    theirs = Theirs(options.model, prompt)
    with closing(theirs):
        engines: dict[str, Engine] = {"ours": Ours(model), "server": theirs}
        rows = list(compare(engines, options))
        rows += [{"engine": name, **turns(engine, options)} for name, engine in engines.items()]
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(
            "  ".join(
                f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
            )
        )


if __name__ == "__main__":
    main()
