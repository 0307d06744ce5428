"""Recommends settings for a server from the findings about it: the mode and the rest of a `[[models]]` entry.

A prompt that is rendered here, with the model's own control tokens, is best: it needs no template and no parser of the
server. Then the server's own calls; then tools as text, which any chat endpoint can do.
"""

import json
from collections.abc import Collection, Mapping
from typing import Final, get_args

from msgspec import Struct

from callwright.dialects.base import TEMPLATE_PREFIX
from callwright.doctor.fields import CHAT_FIELDS, CHAT_SCHEMA, RAW_FIELDS
from callwright.doctor.findings import NAMES, Findings, ServerName, key_hint
from callwright.doctor.probes import CHAT, CHATS, COMPLETIONS, CONTROLS, RAW_CALL, TOOLS, TOOLS_STREAMED
from callwright.turn.model import AUTO, TEMPLATE, UNKNOWN, Mode
from callwright.upstreams.base import NO_CONSTRAINTS, Server
from callwright.upstreams.completions import RAW_SERVERS, ServerKind

_PLAIN: Final = "openai"
# Servers whose users send requests that OpenAI rejects only for their form.
_LOCAL: Final = ("vllm", "sglang", "llamacpp", "ollama", "lmstudio")
_NO_DIALECT: Final = (
    "neither its name nor a template shows its format; json works with any model, its own is better, if you know it: "
    "--dialect D, of those that `callwright dialects` lists"
)
# The options with which these servers parse calls themselves.
_MAKES_CALLS: Final[Mapping[ServerName, str]] = {
    "vllm": "--enable-auto-tool-choice --tool-call-parser NAME",
    "sglang": "--tool-call-parser NAME",
    "llamacpp": "--jinja and a chat template that shows tools",
}
_GATEWAY: Final = (
    "It is a Callwright gateway: clients use it directly, with the base URL {url}. Another gateway in front of it "
    "would add nothing. If a model server is behind it, doctor examines that at its own URL; a model in a file "
    "has none, and `callwright eval FILE` measures it."
)


class ModeChoice(Struct, frozen=True):
    """A setting and the reason for it."""

    value: str
    reason: str


class Advice(Struct, frozen=True):
    """The recommended settings for a model; `usable` is false if no mode works. `toml` is its entry in a configuration;
    `instead`: the advice if it needs no entry. Reasons name probes and their status, never the output of a server or
    its model: that is in the results.
    """

    usable: bool
    mode: Mode = "native"
    dialect: str | None = None
    server: Server = _PLAIN
    constrain: bool = True
    choices: dict[str, ModeChoice] = {}
    toml: str = ""
    instead: str = ""


def server_of(findings: Findings) -> Server:
    """The setting `server` for a server."""
    return next((name for name in get_args(Server) if name == findings.server), _PLAIN)


def server_kind_of(server: Server) -> ServerKind:
    """The same for mode raw, which knows some of them."""
    return next((name for name in RAW_SERVERS if name == server), _PLAIN)


def constraining(mode: Mode, dialect: str | None, server: Server) -> str | None:
    """The probe of the field that constrains calls; None if no field is sent, or none is known for the server."""
    if server in NO_CONSTRAINTS or (mode == "native" and server != "ollama"):
        return None
    if mode == "raw":
        return next((probe for known, probe in RAW_FIELDS.items() if known == server), None)
    own = next((probe for known, probe in CHAT_FIELDS.items() if known == server), None)
    return own if own and dialect not in (None, UNKNOWN) else CHAT_SCHEMA


def advice(
    findings: Findings,
    *,
    without: Collection[Mode] = (),
    server: Server | None = None,
    api_key_env: str | None = None,
) -> Advice:
    """Recommend settings. `without` are modes that have failed; `server`: its kind as configured by the user."""
    mode = _mode(findings, without)
    if mode is None:
        return Advice(usable=False, choices={"mode": ModeChoice("none", _why_none(findings))})
    choices = {"mode": mode}
    chosen: Mode = next(known for known in get_args(Mode) if known == mode.value)
    dialect = None if chosen == "native" else findings.dialect or UNKNOWN
    if dialect is not None:
        choices["dialect"] = ModeChoice(dialect, findings.dialect_reason or _NO_DIALECT)
    asked: Server = server or server_of(findings)
    if chosen == "raw":
        asked = server_kind_of(asked)
    if asked != _PLAIN:
        choices["server"] = ModeChoice(asked, "it was given" if server else findings.sign)
    constrain, why = _constrain(findings, constraining(chosen, dialect, asked))
    if why:
        choices["constrain"] = ModeChoice("auto" if constrain else "off", why)
    if findings.server == "callwright":
        return Advice(True, chosen, dialect, asked, constrain, choices, instead=_GATEWAY.format(url=findings.url))
    settings = {name: choice.value for name, choice in choices.items()}
    if dialect is not None and dialect.startswith(TEMPLATE_PREFIX):
        # The dialect derived from the server's own template has no name to configure: mode auto derives it again.
        choices["dialect"] = ModeChoice(TEMPLATE, findings.dialect_reason)
        settings = {"mode": AUTO}
    if asked in _LOCAL or findings.server in _LOCAL:
        settings["requests"] = "lenient"  # as these servers take them
    toml = _toml(findings, settings, api_key_env)
    return Advice(True, chosen, dialect, asked, constrain, choices, toml)


def _mode(findings: Findings, without: Collection[Mode]) -> ModeChoice | None:
    if findings.message:
        return None
    chats = findings.status(CHAT) == "works" or findings.status(TOOLS_STREAMED) in CHATS
    if "raw" not in without and raw_works(findings):
        return ModeChoice("raw", "raw completions keep the control tokens, and a call in its dialect comes back whole")
    if "native" not in without and findings.status(TOOLS_STREAMED) == "works":
        return ModeChoice("native", f"{_no_raw(findings)}; the server's own calls work in a stream")
    if "prompt" not in without and chats:
        failed = "the server's own calls failed" if "native" in without else _no_native(findings)
        is_skill = findings.status(TOOLS_STREAMED) == "no call"  # which no option of the server changes
        started = None if is_skill else _MAKES_CALLS.get(findings.server)
        better = f"; better: start {NAMES[findings.server]} with {started}" if started else ""
        return ModeChoice("prompt", f"{_no_raw(findings)}; {failed}; any chat endpoint takes tools as text{better}")
    return None


def raw_works(findings: Findings) -> bool:
    """Whether mode raw works: a call is parsed, and its control tokens survive."""
    return bool(findings.dialect) and all(findings.status(probe) == "works" for probe in (CONTROLS, RAW_CALL))


def _no_raw(findings: Findings) -> str:
    if findings.dialect is None:
        return "its dialect is not known"
    lost = findings.status(RAW_CALL) == "works" and findings.status(CONTROLS) != "works"
    failed = CONTROLS if lost else RAW_CALL if findings.status(RAW_CALL) else COMPLETIONS
    return f"{failed}: {_words(findings, failed)}"


def _no_native(findings: Findings) -> str:
    if findings.status(TOOLS) == "works":
        return f"the server's own calls work only when they are not streamed ({_words(findings, TOOLS_STREAMED)})"
    if findings.status(TOOLS_STREAMED) == "no call":
        return "the server shows its tools to the model, which makes no call of them"
    return f"the server makes no calls of its own ({_words(findings, TOOLS_STREAMED)})"


def _words(findings: Findings, probe: str) -> str:
    return findings.status(probe) or "not tried"


def _why_none(findings: Findings) -> str:
    evidence = next((result.evidence for result in findings.results if result.probe == CHAT), "")
    return findings.message or f"no endpoint works: chat: {_words(findings, CHAT)}.{key_hint(evidence)}"


def _constrain(findings: Findings, probe: str | None) -> tuple[bool, str]:
    """Whether a required call is constrained, and why."""
    status = findings.status(probe) if probe else None
    if status is None:
        return True, ""
    if status in ("ignored", "refused"):
        return False, f"{probe}: {_words(findings, probe or '')}"
    if status == "enforced":
        return True, f"{probe} is enforced"
    return True, f"{probe}: {_words(findings, probe or '')}; a grammar that is not enforced does no harm"


def _toml(findings: Findings, chosen: dict[str, str], api_key_env: str | None) -> str:
    settings = {"name": findings.model or "*", "upstream": findings.url, **chosen}
    if settings.get("constrain") == "auto":
        del settings["constrain"]
    if api_key_env:
        settings["api_key_env"] = api_key_env
    return toml_table("[[models]]", settings)


def toml_table(head: str, settings: Mapping[str, object]) -> str:
    """A table of a configuration; the values are texts, numbers, booleans, or lists of these."""
    lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in settings.items())
    return "\n".join((head, *lines))
