"""The ways in which models and their servers go wrong, by name, for the simulated model.

A fault changes what is meant (`meaning`: the turn), how it is written (`writing`: the text in one dialect or in
any), or what the server does with it (`server`). Each was seen in the wild; `about` says how it shows.
"""

import random
import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from callwright.conversation import AssistantTurn, Call, Conversation, Message, TextPart
from callwright.errors import ConfigError, did_you_mean
from callwright.tolerant_json.codec import NotJsonError, decode, encode

__all__ = ["FAULTS", "Faults", "ServerFault", "SimulatedFault"]

ServerFault: TypeAlias = Literal["", "error_500", "html", "silent", "cut_stream", "error_event"]
Meaning: TypeAlias = Callable[[AssistantTurn, Conversation], AssistantTurn]
Writing: TypeAlias = Callable[[str], str]


_SAMPLE: Final = "sample"


class SimulatedFault(Struct, frozen=True):
    """One way to be wrong. `dialect`: the only one it can be written in, `""` for any. `name`: as in `FAULTS`."""

    about: str
    meaning: Meaning | None = None
    writing: Writing | None = None
    server: ServerFault = ""
    dialect: str = ""
    name: str = ""


class Faults:
    """Chooses the faults of each request: names with the share of requests they befall. `samples`: where a constraint
    says what an answer must look like, it is a random one of those.

    The choice depends on nothing but the seed and the number of the request.
    """

    def __init__(self, rates: Mapping[str, float] | None = None, seed: int = 0, *, samples: bool = False) -> None:
        self._rates = dict(rates or {})
        self.samples = samples
        self._random = random.Random(seed)

    @classmethod
    def parse(cls, spec: str, seed: int = 0) -> "Faults":
        """Read `string_numbers,cut_stream:0.3` or `all:0.3`; a name alone befalls every request. `sample` is no fault:
        it makes random calls of what is allowed.
        """
        rates: dict[str, float] = {}
        entries = [entry for part in spec.split(",") if (entry := part.strip())]
        for entry in entries:
            if entry == _SAMPLE:
                continue
            name, colon, rate = entry.partition(":")
            try:
                share = float(rate) if colon else 1.0
            except ValueError:
                share = -1.0
            if not 0 <= share <= 1:
                raise ConfigError(f"Fault {name!r}: expected a share from 0 to 1, got {rate!r}. Example: {name}:0.3")
            if name != "all" and name not in FAULTS:
                known = (*FAULTS, _SAMPLE)
                raise ConfigError(f"Unknown fault {name!r}.{did_you_mean(name, known)} Known are: {', '.join(known)}.")
            rates |= dict.fromkeys(FAULTS, share) if name == "all" else {name: share}
        return cls(rates, seed, samples=_SAMPLE in entries)

    def choose(self, dialect: str) -> list[SimulatedFault]:
        """The faults of the next request, which is written in `dialect` (`""` = by a chat server)."""
        hit = [FAULTS[name] for name, rate in self._rates.items() if self._random.random() < rate]
        return [fault for fault in hit if not fault.writing or (dialect and fault.dialect in ("", dialect))]


# --- what is meant ---


def _arguments(change: Callable[[dict[str, object]], object]) -> Meaning:
    """A fault in the arguments of every call."""

    def meaning(turn: AssistantTurn, _: Conversation) -> AssistantTurn:
        return _with_calls(turn, [_changed(call, change) for call in turn.calls])

    return meaning


def _changed(call: Call, change: Callable[[dict[str, object]], object]) -> Call:
    try:
        value = decode(call.arguments)
    except NotJsonError:
        return call
    return msgspec.structs.replace(call, arguments=encode(change(value)).decode())


def _with_calls(turn: AssistantTurn, calls: list[Call]) -> AssistantTurn:
    return AssistantTurn(turn.reasoning, turn.message, calls)


def _as_strings(arguments: dict[str, object]) -> object:
    return {key: encode(value).decode() if not isinstance(value, str) else value for key, value in arguments.items()}


def _without_last(arguments: dict[str, object]) -> object:
    return dict(list(arguments.items())[:-1])


def _unknown_tool(turn: AssistantTurn, _: Conversation) -> AssistantTurn:
    return _with_calls(turn, [msgspec.structs.replace(call, name=f"{call.name}_v2") for call in turn.calls])


def _two_calls(turn: AssistantTurn, _: Conversation) -> AssistantTurn:
    return _with_calls(turn, [*turn.calls, *turn.calls[-1:]])


def _only_said(turn: AssistantTurn, _: Conversation) -> AssistantTurn:
    if not turn.calls:
        return turn
    return AssistantTurn(message=Message("assistant", (TextPart(f"I will use {turn.calls[0].name} for that."),)))


def _camel_case(arguments: dict[str, object]) -> object:
    return {re.sub(r"_(\w)", lambda found: found[1].upper(), key): value for key, value in arguments.items()}


def _named_oddly(turn: AssistantTurn, _: Conversation) -> AssistantTurn:
    return _with_calls(turn, [msgspec.structs.replace(call, name=call.name.replace("_", "-")) for call in turn.calls])


def _call_in_call(turn: AssistantTurn, _: Conversation) -> AssistantTurn:
    return _with_calls(
        turn,
        [
            msgspec.structs.replace(call, arguments=f'{{"name": "{call.name}", "arguments": {call.arguments}}}')
            for call in turn.calls
        ],
    )


def _as_text(turn: AssistantTurn, _: Conversation) -> AssistantTurn:
    return _with_calls(
        turn, [msgspec.structs.replace(call, arguments=encode(call.arguments).decode()) for call in turn.calls]
    )


def _teaches(turn: AssistantTurn, conversation: Conversation) -> AssistantTurn:
    if turn.calls or not conversation.tools or not turn.text:
        return turn
    name = conversation.tools[0].name
    shown = f'For example, a call looks like this:\n```json\n{{"tool": "{name}", "arguments": {{}}}}\n```\n{turn.text}'
    return AssistantTurn(turn.reasoning, Message("assistant", (TextPart(shown),)))


# --- how it is written ---


def _in_json(change: Callable[[str], str]) -> Writing:
    """A change of what stands between the first brace and the last."""

    def writing(text: str) -> str:
        begin, end = text.find("{"), text.rfind("}")
        return text[:begin] + change(text[begin : end + 1]) + text[end + 1 :] if 0 <= begin < end else text

    return writing


def _single_quoted(json_text: str) -> str:
    plain = "'" not in json_text and '\\"' not in json_text
    return json_text.replace('"', "'") if plain else json_text


def _sub(pattern: str, replacement: str, count: int = 0) -> Writing:
    compiled = re.compile(pattern, re.DOTALL)
    return lambda text: compiled.sub(replacement, text, count=count)


def _without_last_brace(text: str) -> str:
    head, brace, tail = text.rpartition("}")
    return head + tail if brace else text


_FAULTS: Final[Mapping[str, SimulatedFault]] = {
    "string_numbers": SimulatedFault("numbers and booleans as strings", meaning=_arguments(_as_strings)),
    "missing_argument": SimulatedFault("the last argument is left out", meaning=_arguments(_without_last)),
    "unknown_tool": SimulatedFault("a tool is called that nobody offered", meaning=_unknown_tool),
    "second_call": SimulatedFault("the last call is made twice", meaning=_two_calls),
    "only_said": SimulatedFault("the call is announced and not made", meaning=_only_said),
    "camel_case": SimulatedFault("names of parameters in another spelling", meaning=_arguments(_camel_case)),
    "odd_name": SimulatedFault("the tool's name with other marks between its words", meaning=_named_oddly),
    "call_in_call": SimulatedFault("the arguments are a call of the same tool", meaning=_call_in_call),
    "arguments_as_text": SimulatedFault("the arguments are a JSON string", meaning=_as_text),
    "teaches": SimulatedFault("an answer in text shows an example of a call", meaning=_teaches),
    "single_quotes": SimulatedFault("strings in single quotes", writing=_in_json(_single_quoted)),
    "bare_keys": SimulatedFault(
        "keys without quotes", writing=_in_json(lambda text: re.sub(r'"(\w+)":', r"\1:", text))
    ),
    "comments": SimulatedFault(
        "a comment in the JSON", writing=_in_json(lambda text: text.replace(", ", ", /* next */ ", 1))
    ),
    "no_commas": SimulatedFault(
        "no commas between members", writing=_in_json(lambda text: re.sub(r',(?= *")', " ", text))
    ),
    "python_words": SimulatedFault(
        "True, False and None",
        writing=_in_json(lambda text: re.sub(r"\b(true|false)\b", lambda found: found[1].title(), text)),
    ),
    "missing_brace": SimulatedFault("a closing brace is missing", writing=_without_last_brace),
    "trailing_comma": SimulatedFault("a comma before the last brace", writing=_sub(r"\}(?=[^}]*\Z)", ",}")),
    "raw_newline": SimulatedFault("line feeds in strings are not escaped", writing=_sub(r"\\n", "\n")),
    "wrong_channel": SimulatedFault(
        "the call is on analysis", writing=_sub(r"commentary(?= to=)", "analysis"), dialect="harmony"
    ),
    "double_channel": SimulatedFault(
        "a second channel behind the recipient",
        writing=_sub(r"( to=[\w.-]+) <\|constrain\|>json", r"\1<|channel|>commentary"),
        dialect="harmony",
    ),
    "bare_recipient": SimulatedFault(
        "the recipient without its namespace", writing=_sub(r"to=functions\.", "to="), dialect="harmony"
    ),
    "foreign_namespace": SimulatedFault(
        "the recipient in another namespace",
        writing=_sub(r"to=functions\.", "to=repo_browser."),
        dialect="harmony",
    ),
    "missing_message_token": SimulatedFault(
        "no <|message|> before the answer", writing=_sub(r"final<\|message\|>", "final "), dialect="harmony"
    ),
    "wrong_stop": SimulatedFault("a call ends with <|end|>", writing=_sub(r"<\|call\|>", "<|end|>"), dialect="harmony"),
    "answers_itself": SimulatedFault(
        "the model makes up the tool's answer",
        writing=_sub(
            r"<\|call\|>\Z", "<|call|>commentary<|message|>{}<|call|><|start|>assistant<|channel|>final<|message|>Done."
        ),
        dialect="harmony",
    ),
    "tokens_stripped": SimulatedFault(
        "the server has removed the control tokens", writing=_sub(r"<\|[a-z]+\|>", ""), dialect="harmony"
    ),
    "missing_close_tag": SimulatedFault(
        "</tool_call> is missing", writing=_sub(r"\n</tool_call>", ""), dialect="hermes"
    ),
    "extra_brace": SimulatedFault(
        "a brace too many", writing=_sub(r"\}\n</tool_call>", "}}\n</tool_call>"), dialect="hermes"
    ),
    "unfenced": SimulatedFault(
        "the call stands without its fence", writing=_sub(r"```json\n|\n```", ""), dialect="json"
    ),
    "prose_behind": SimulatedFault(
        "text behind the call", writing=_sub(r"```\Z", "```\nI will tell you as soon as I know."), dialect="json"
    ),
    "error_500": SimulatedFault("HTTP 500 before the first byte", server="error_500"),
    "html": SimulatedFault("an HTML page instead of an answer", server="html"),
    "silent": SimulatedFault("nothing is ever answered", server="silent"),
    "cut_stream": SimulatedFault("the stream ends in the middle", server="cut_stream"),
    "error_event": SimulatedFault("an error event in the middle of the stream", server="error_event"),
}
FAULTS: Final[Mapping[str, SimulatedFault]] = {
    name: msgspec.structs.replace(fault, name=name) for name, fault in _FAULTS.items()
}
