"""The ways in which models and their servers go wrong, by name, for the simulated model.

A fault changes the turn (`meaning`), its text (`writing`), or the server's handling of it (`failure`). Each was seen
in the wild; `docs/simulated.md` describes them.
"""

import random
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from callwright.conversation import AssistantTurn, Call, Conversation, Message, TextPart
from callwright.errors import ConfigError, UpstreamFault, did_you_mean
from callwright.tolerant_json.codec import NotJsonError, decode, encode

Meaning: TypeAlias = Callable[[AssistantTurn, Conversation], AssistantTurn]
Writing: TypeAlias = Callable[[str], str]

_SAMPLE: Final = "sample"


class Failure(Struct, frozen=True):
    """The error of a server; without words it never answers. `late`: it has sent a part of the answer before."""

    words: str
    fault: UpstreamFault = "status"
    status: int | None = None
    late: bool = False


class SimulatedFault(Struct, frozen=True):
    """One way to be wrong. `dialect`: the only one it can be written in, `""` for any."""

    name: str
    meaning: Meaning | None = None
    writing: Writing | None = None
    dialect: str = ""
    failure: Failure | None = None


class Faults:
    """Chooses the faults of each request: names with the share of requests that they change. `samples`: a constrained
    answer is a random one that the constraint allows.

    The choice depends on nothing but the seed and the number of the request.
    """

    def __init__(self, rates: Mapping[str, float] | None = None, seed: int = 0, *, samples: bool = False) -> None:
        self._rates = dict(rates or {})
        self.samples = samples
        self._random = random.Random(seed)

    @classmethod
    def parse(cls, spec: str, seed: int = 0) -> "Faults":
        """Read `string_numbers,cut_stream:0.3` or `all:0.3`; a name alone changes every request. `sample` is not a
        fault: it makes random calls within the constraint.
        """
        rates: dict[str, float] = {}
        entries = [entry for part in spec.split(",") if (entry := part.strip())]
        for entry in entries:
            name, colon, rate = entry.partition(":")
            try:
                share = float(rate) if colon else 1.0
            except ValueError:
                share = -1.0
            if not 0 <= share <= 1:
                raise ConfigError(f"Fault {name!r}: expected a share from 0 to 1, got {rate!r}. Example: {name}:0.3")
            if name not in ("all", *FAULTS) and entry != _SAMPLE:
                known = (*FAULTS, _SAMPLE)
                raise ConfigError(f"Unknown fault {name!r}.{did_you_mean(name, known)} Known are: {', '.join(known)}.")
            rates |= dict.fromkeys(FAULTS if name == "all" else [name], share)
        return cls(rates, seed, samples=rates.pop(_SAMPLE, None) is not None)

    def choose(self, dialect: str) -> list[SimulatedFault]:
        """The faults of the next request, which is written in `dialect` (`""` = by a chat server)."""
        hit = [FAULTS[name] for name, rate in self._rates.items() if self._random.random() < rate]
        return [fault for fault in hit if not fault.writing or (dialect and fault.dialect in ("", dialect))]


# --- faults in the meaning ---


def _calls(change: Callable[[Call], Call]) -> Meaning:
    """A fault in every call."""
    return lambda turn, _: replace(turn, calls=[change(call) for call in turn.calls])


def _arguments(change: Callable[[dict[str, Any]], object]) -> Meaning:
    """A fault in the arguments of every call."""

    def changed(call: Call) -> Call:
        try:
            return replace(call, arguments=encode(change(decode(call.arguments))).decode())
        except NotJsonError:
            return call

    return _calls(changed)


def _string(value: object) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _camel_case(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def _only_announced(turn: AssistantTurn, _: Conversation) -> AssistantTurn:
    announced = [TextPart(f"I will use {call.name} for that.") for call in turn.calls[:1]]
    return AssistantTurn(message=Message("assistant", tuple(announced))) if announced else turn


def _teaches(turn: AssistantTurn, conversation: Conversation) -> AssistantTurn:
    if turn.calls or not conversation.tools or not turn.text:
        return turn
    call = f'{{"tool": "{conversation.tools[0].name}", "arguments": {{}}}}'
    shown = f"For example, a call looks like this:\n```json\n{call}\n```\n{turn.text}"
    return replace(turn, message=Message("assistant", (TextPart(shown),)))


# --- how it is written ---


def _sub(pattern: str, replacement: str | Callable[[re.Match[str]], str], count: int = 0) -> Writing:
    return partial(re.compile(pattern, re.DOTALL).sub, replacement, count=count)


def _in_json(change: Writing) -> Writing:
    """A change of the text from the first brace to the last."""
    return _sub(r"\{.*\}", lambda found: change(found[0]))


# By dialect, `""` for any.
_WRITINGS: Final[Mapping[str, Mapping[str, Writing]]] = {
    "": {
        "single_quotes": _in_json(lambda text: text if "'" in text or '\\"' in text else text.replace('"', "'")),
        "bare_keys": _in_json(_sub(r'"(\w+)":', r"\1:")),
        "comments": _in_json(_sub(", ", ", /* next */ ", 1)),
        "no_commas": _in_json(_sub(r',(?= *")', " ")),
        "python_words": _in_json(_sub(r"\b(?:true|false)\b", lambda found: found[0].title())),
        "missing_brace": _sub(r"\}(?=[^}]*\Z)", ""),
        "trailing_comma": _sub(r"\}(?=[^}]*\Z)", ",}"),
        "raw_newline": _sub(r"\\n", "\n"),
    },
    "harmony": {
        "wrong_channel": _sub(r"commentary(?= to=)", "analysis"),
        "double_channel": _sub(r"( to=[\w.-]+) <\|constrain\|>json", r"\1<|channel|>commentary"),
        "bare_recipient": _sub(r"to=functions\.", "to="),
        "foreign_namespace": _sub(r"to=functions\.", "to=repo_browser."),
        "missing_message_token": _sub(r"final<\|message\|>", "final "),
        "wrong_stop": _sub(r"<\|call\|>", "<|end|>"),
        "answers_itself": _sub(
            r"<\|call\|>\Z",
            "<|call|>commentary<|message|>{}<|call|><|start|>assistant<|channel|>final<|message|>Done.",
        ),
        "tokens_stripped": _sub(r"<\|[a-z]+\|>", ""),
    },
    "hermes": {
        "missing_close_tag": _sub(r"\n</tool_call>", ""),
        "extra_brace": _sub(r"\}\n</tool_call>", "}}\n</tool_call>"),
    },
    "json": {
        "unfenced": _sub(r"```json\n|\n```", ""),
        "prose_behind": _sub(r"```\Z", "```\nI will tell you as soon as I know."),
    },
}
_MEANINGS: Final[Mapping[str, Meaning]] = {
    "string_numbers": _arguments(lambda given: {key: _string(value) for key, value in given.items()}),
    "missing_argument": _arguments(lambda given: dict([*given.items()][:-1])),
    "unknown_tool": _calls(lambda call: replace(call, name=f"{call.name}_v2")),
    "second_call": lambda turn, _: replace(turn, calls=[*turn.calls, *turn.calls[-1:]]),
    "only_said": _only_announced,
    "camel_case": _arguments(lambda given: {_camel_case(key): value for key, value in given.items()}),
    "odd_name": _calls(lambda call: replace(call, name=call.name.replace("_", "-"))),
    "call_in_call": _calls(
        lambda call: replace(call, arguments=f'{{"name": "{call.name}", "arguments": {call.arguments}}}')
    ),
    "arguments_as_text": _calls(lambda call: replace(call, arguments=encode(call.arguments).decode())),
    "teaches": _teaches,
}
_FAILURES: Final[Mapping[str, Failure]] = {
    "error_500": Failure("answered 500: internal error", status=500),
    "html": Failure("answered text/html instead of events: Bad gateway", "protocol"),
    "silent": Failure(""),
    "cut_stream": Failure("closed the connection in the middle of its answer", "cut", late=True),
    "error_event": Failure("reports an error: the engine has crashed", late=True),
}
FAULTS: Final[Mapping[str, SimulatedFault]] = {
    **{name: SimulatedFault(name, meaning=meaning) for name, meaning in _MEANINGS.items()},
    **{
        name: SimulatedFault(name, writing=writing, dialect=dialect)
        for dialect, writings in _WRITINGS.items()
        for name, writing in writings.items()
    },
    **{name: SimulatedFault(name, failure=failure) for name, failure in _FAILURES.items()},
}
