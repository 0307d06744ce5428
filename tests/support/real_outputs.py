"""A corpus of outputs that a small trained model wrote, in the formats of all dialects: how they are made and read.

`python -m tests.support.real_outputs FILE.gguf` makes a corpus, with xllamacpp; the one here has the outputs of
SmolLM2-135M-Instruct only. The same weights, the same version of the engine and the same kind of processor give the
same outputs; another version rounds in other places. Each prompt is a dialect's own, with an example of a call in it
or without. Some answers are begun for the model: with half a call, a fence, or words. The prompts are texts of this
project.
"""

import argparse
import json
import lzma
import random
import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import callwright
from callwright.dialects.base import dialect_names, get_dialect

__all__ = ["CORPUS", "TOOLS", "RealOutput", "real_outputs"]

CORPUS: Final = Path(__file__).parents[1] / "dialects" / "real_outputs.jsonl.xz"


class RealOutput(NamedTuple):
    """An output, with all that determines it. `begun`: the number of its characters that were given to the model.
    `start` and `end` are those of the parser: the place at which it begins, and why it ended.
    """

    model: str
    dialect: str
    prompt: str
    start: str
    temperature: float
    seed: int
    begun: int
    end: str
    text: str


def real_outputs(path: Path = CORPUS) -> list[RealOutput]:
    """All outputs of a file."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [RealOutput(**json.loads(line)) for line in lines]


def _tool(name: str, does: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return {"type": "function", "function": {"name": name, "description": does, "parameters": parameters}}


TOOLS: Final = [
    _tool("get_weather", "The weather.", city={"type": "string"}, unit={"type": "string", "enum": ["C", "F"]}),
    _tool("add_event", "Adds an event.", title={"type": "string"}, hour={"type": "integer"}),
]
_QUESTIONS: Final = (
    "What is the weather in Oslo?",
    "Add lunch with Ann at 12.",
    "Weather in Rome and in Cairo, in C?",
    "Add a walk at 17, then tell me the weather in Bern.",
)
# The texts with which an answer is begun: none, half a call (`\0`), a call that is shown, an announcement.
_BEGUN: Final = (
    "",
    "\0",
    "\0",
    "The call is written like this:\n\n\0",
    "For example:\n\n```\n\0",
    "```json\n",
    "I would write \0",
    "Let me look that up.\n\n\0",
)
_LIMITS: Final = (6, 12, 20, 28, 40)
# One dialect in this many is prompted without an example of a call.
_BARE: Final = 4
_TEMPERATURES: Final = (0.0, 0.4, 0.7, 1.0, 1.3)


def _messages(question: str, *, shown: bool) -> list[dict[str, Any]]:
    """A conversation that ends with a question, after an example of a call if `shown`."""
    asked = {"role": "user", "content": question}
    if not shown:
        return [asked]
    call = {"name": "get_weather", "arguments": '{"city": "Lima", "unit": "C"}'}
    return [
        {"role": "user", "content": "What is the weather in Lima, in C?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call00001", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "call00001", "content": "19 degrees"},
        {"role": "assistant", "content": "It is 19 degrees in Lima."},
        asked,
    ]


def _half_call(dialect: str, chance: random.Random) -> str:
    """The beginning of a call as the dialect writes it, up to a place in or after its name."""
    call = callwright.write([{"name": "get_weather", "arguments": {"city": "Oslo"}}], dialect=dialect, tools=TOOLS)
    named = call.find("get_weather")
    return call[: chance.choice((named, named + 3, named + 11, named + 14, call.find("Oslo")))].lstrip()


class _Model:
    """A model in this process, with one thread."""

    def __init__(self, path: Path) -> None:
        import xllamacpp  # here, because only this needs it

        asked = xllamacpp.CommonParams()
        asked.model.path = str(path)
        asked.n_ctx, asked.n_parallel, asked.n_gpu_layers, asked.verbosity = 4096, 1, 0, 1
        asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = 1
        asked.offline, asked.ui, asked.endpoint_metrics = True, False, True
        asked.port, asked.api_keys = 0, [secrets.token_urlsafe(32)]
        self._engine = xllamacpp.Server(asked)
        self._engine.handle_metrics()

    def complete(self, **fields: Any) -> tuple[str, str]:
        """The completion of a prompt, and why it ended."""
        pieces: list[bytes] = []

        def take(piece: bytes) -> bool:
            pieces.append(piece)
            return False

        self._engine.handle_completions(json.dumps(fields).encode(), take)
        (choice,) = json.loads(b"".join(pieces))["choices"]
        return choice["text"], choice["finish_reason"]


def _made(model: _Model, name: str, dialect: str, each: int) -> Iterator[RealOutput]:
    number = zlib.crc32(f"{name} {dialect}".encode())
    chance = random.Random(number)
    kind = "shown" if number % _BARE else "bare"
    question = chance.randrange(len(_QUESTIONS))
    prompt = callwright.render(_messages(_QUESTIONS[question], shown=kind == "shown"), tools=TOOLS, dialect=dialect)
    for sample in range(each):
        begun = _BEGUN[sample % len(_BEGUN)].replace("\0", _half_call(dialect, chance))
        temperature, seed = chance.choice(_TEMPERATURES), chance.randrange(1_000_000)
        text, end = model.complete(
            prompt=prompt.text + begun,
            cache_prompt=sample > 0,  # a dialect's outputs depend on none of other dialects
            max_tokens=chance.choice(_LIMITS),
            temperature=temperature,
            seed=seed,
            stop=list(get_dialect(dialect).stops),
        )
        asked = f"{kind}-{question}"
        yield RealOutput(name, dialect, asked, prompt.start, temperature, seed, len(begun), end, begun + text)


def main() -> None:
    """Make the corpus."""
    parser = argparse.ArgumentParser(
        description="Makes a corpus of outputs of a model, in the formats of all dialects; goes on where it stopped."
    )
    parser.add_argument("model", type=Path, help="a GGUF file")
    parser.add_argument("--out", type=Path, default=CORPUS)
    parser.add_argument("--each", type=int, default=40, metavar="N", help="outputs for each dialect")
    parser.add_argument("--dialects", nargs="*", default=dialect_names())
    given = parser.parse_args()
    made = real_outputs(given.out) if given.out.exists() else []
    done = {output.dialect for output in made}
    model = _Model(given.model)
    for dialect in given.dialects:
        if dialect not in done:
            made += _made(model, given.model.stem, dialect, given.each)
            _write(given.out, sorted(made, key=lambda output: output.dialect))


def _write(path: Path, outputs: list[RealOutput]) -> None:
    with lzma.open(path, "wt", encoding="utf-8", preset=9 | lzma.PRESET_EXTREME) as out:
        out.writelines(json.dumps(output._asdict(), ensure_ascii=False) + "\n" for output in outputs)


if __name__ == "__main__":
    main()
