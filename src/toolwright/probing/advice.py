"""What to do with a server, from what was found out about it: the mode and the rest of a `[[models]]` entry.

A prompt that is rendered here, with the model's own control tokens, is best: no template and no parser of the server
stands between. Then the server's own calls; then tools as text, which any chat endpoint can do.
"""

import json
from collections.abc import Collection
from typing import Final, get_args

from msgspec import Struct

from toolwright.probing.fields import RAW_FIELDS
from toolwright.probing.findings import Findings
from toolwright.probing.probes import CHAT, COMPLETIONS, CONTROLS, RAW_CALL, TOOLS, TOOLS_STREAMED
from toolwright.turn import UNKNOWN, Mode
from toolwright.upstreams.completions import Flavour

__all__ = ["Advice", "Choice", "advice", "flavour_of", "raw_works"]

_PLAIN: Final[Flavour] = "openai"


class Choice(Struct, frozen=True):
    """A setting, and why it is this one."""

    value: str
    reason: str


class Advice(Struct, frozen=True):
    """How a model should be asked; `usable` is false where there is no way. `toml` is its entry in a configuration."""

    usable: bool
    mode: Mode = "native"
    dialect: str | None = None
    server: Flavour = _PLAIN
    constrain: bool = True
    choices: dict[str, Choice] = {}
    toml: str = ""


def flavour_of(findings: Findings) -> Flavour:
    """The setting `server` for a server."""
    return next((name for name in get_args(Flavour) if name == findings.server), _PLAIN)


def advice(
    findings: Findings,
    *,
    without: Collection[Mode] = (),
    server: Flavour | None = None,
    api_key_env: str | None = None,
) -> Advice:
    """How to ask. `without` are modes that have failed; `server` is what the user says that it is."""
    mode = _mode(findings, without)
    if mode is None:
        return Advice(usable=False, choices={"mode": Choice("none", _why_none(findings))})
    choices = {"mode": mode}
    chosen: Mode = next(known for known in get_args(Mode) if known == mode.value)
    dialect = None if chosen == "native" else findings.dialect or UNKNOWN
    if dialect is not None:
        reason = findings.dialect_reason or "neither its name nor a template tells more; json works with any model"
        choices["dialect"] = Choice(dialect, reason)
    flavour: Flavour = server or flavour_of(findings)
    constrain = True
    if chosen == "raw":
        choices["server"] = Choice(flavour, findings.sign or "nothing tells which server it is")
        constrain, why = _constrain(findings, flavour)
        choices["constrain"] = Choice("auto" if constrain else "off", why)
    toml = _toml(findings, {name: choice.value for name, choice in choices.items()}, api_key_env)
    return Advice(True, chosen, dialect, flavour, constrain, choices, toml)


def _mode(findings: Findings, without: Collection[Mode]) -> Choice | None:
    if findings.message:
        return None
    chats = findings.status(CHAT) == "works" or findings.status(TOOLS_STREAMED) in ("works", "ignored")
    if "raw" not in without and raw_works(findings):
        return Choice("raw", "raw completions keep the control tokens, and a call in its dialect comes back whole")
    if "native" not in without and findings.status(TOOLS_STREAMED) == "works":
        return Choice("native", f"{_no_raw(findings)}; the server's own calls work in a stream")
    if "prompt" not in without and chats:
        failed = "the server's own calls failed" if "native" in without else _no_native(findings)
        return Choice("prompt", f"{_no_raw(findings)}; {failed}; any chat endpoint takes tools as text")
    return None


def raw_works(findings: Findings) -> bool:
    """Whether mode raw does what it should: a call is read, and by its control tokens."""
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
    return f"the server makes no calls of its own ({_words(findings, TOOLS_STREAMED)})"


def _words(findings: Findings, probe: str) -> str:
    found = next((result for result in findings.results if result.probe == probe), None)
    return f"{found.status}, {found.evidence}" if found else "not tried"


def _why_none(findings: Findings) -> str:
    return findings.message or f"no endpoint works: chat: {_words(findings, CHAT)}"


def _constrain(findings: Findings, flavour: Flavour) -> tuple[bool, str]:
    """Whether grammars are sent in mode raw."""
    field = next((field for server, field in RAW_FIELDS.items() if server == flavour), None)
    if field is None:
        return True, "none is sent: it is not known how this server takes a grammar"
    status = findings.status(field)
    if status in ("ignored", "refused"):
        return False, f"{field}: {_words(findings, field)}"
    if status == "enforced":
        return True, f"{field} is enforced"
    return True, f"{field}: {_words(findings, field)}; a grammar that is not enforced does no harm"


def _toml(findings: Findings, chosen: dict[str, str], api_key_env: str | None) -> str:
    settings = {"name": findings.model or "*", "upstream": findings.url, **chosen}
    if settings.get("server") == _PLAIN:
        del settings["server"]
    if settings.get("constrain") == "auto":
        del settings["constrain"]
    if api_key_env:
        settings["api_key_env"] = api_key_env
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in settings.items()]
    return "\n".join(["[[models]]", *lines])
