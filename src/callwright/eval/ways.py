"""The ways in which a model can be asked, by name: `native`, `raw:hermes`, `prompt:json+constrain=off`, `direct:chat`.

A way is MODE, a dialect after `:` and settings after `+`. `direct` is the server itself, over one of its APIs, without
repairs; `reread` parses the model output of `direct:chat` again. Doctor's findings decide which ways a server has.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args, get_type_hints

from msgspec import Struct
from msgspec.structs import fields, replace

from callwright.dialects.base import get_dialect
from callwright.doctor.findings import Findings
from callwright.doctor.probes import CHAT, TOOLS, TOOLS_STREAMED
from callwright.doctor.recommend import raw_works, server_kind_of, server_of
from callwright.errors import ConfigError, did_you_mean
from callwright.eval.wires import WIRES
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.turn.model import AUTO, MODES, TEMPLATE, UNKNOWN, Mode

DIRECT: Final[Literal["direct"]] = "direct"
REREAD: Final[Literal["reread"]] = "reread"
# Settings of a model that a way may set; other names are options of its dialect, or in mode native fields of requests.
_SETTINGS: Final = ("constrain", "retries", "ask_ambiguous", "defer_tools_above", "server")
_STREAM: Final = "stream"
_THINKING: Final = "thinking"
_OFF: Final = "off"
_GATEWAY: Final = "callwright"
_Mode: TypeAlias = Mode | Literal["direct", "reread"]


class Way(Struct, frozen=True):
    """One way. `of`: the dialect, of `direct` the wire. `settings` are those of a model, `options` all others.
    `streamed`: as for a streaming client, which has already received part of the answer, so less can be retried.
    """

    name: str
    mode: _Mode
    of: str | None = None
    settings: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}
    streamed: bool = True

    def model_settings(self) -> dict[str, Any]:
        """The settings of its entry in `[[models]]`, without name and server."""
        given: dict[str, Any] = {"mode": self.mode, **self.settings}
        if self.of is not None:
            given["dialect"] = self.of
        if self.options:
            given["fields" if self.mode == "native" else "options"] = dict(self.options)
        return given


def read_way(text: str) -> Way:
    """The way of this name. Raises `ConfigError`."""
    head, *rest = text.split("+")
    mode, colon, of = head.partition(":")
    known: tuple[_Mode, ...] = (*MODES, DIRECT, REREAD)
    chosen: _Mode | None = next((one for one in known if one == mode), None)
    if chosen is None:
        raise ConfigError(
            f"--way {text}: expected {', '.join(known)}, with a dialect after ':' and settings after '+', got "
            f"{mode!r}.{did_you_mean(mode, known)} Example: --way raw:hermes+constrain=off"
        )
    given = dict(_setting(text, part) for part in rest)
    if chosen == DIRECT:
        wire = of or WIRES[0]
        if wire not in WIRES or given:
            raise ConfigError(f"--way {text}: direct takes one of {', '.join(WIRES)} after ':', and no settings.")
        return Way(f"{DIRECT}:{wire}", DIRECT, wire)
    if chosen == REREAD and (given or of in (AUTO, TEMPLATE)):
        raise ConfigError(f"--way {text}: reread takes a dialect after ':', such as reread:hermes, and no settings.")
    if chosen == "native" and colon:
        raise ConfigError(f"--way {text}: in mode native the server reads: leave out {of!r}.")
    if chosen != "native":
        if not of:
            raise ConfigError(f"--way {text}: mode {mode} needs a dialect after ':', such as {mode}:hermes.")
        if of not in (AUTO, TEMPLATE):
            get_dialect(of)
    streamed = given.pop(_STREAM, "on")
    if streamed not in ("on", "off"):
        raise ConfigError(f"--way {text}: {_STREAM}: expected on or off, got {streamed!r}.")
    settings = {name: value for name, value in given.items() if name in _SETTINGS}
    options = {name: value for name, value in given.items() if name not in _SETTINGS}
    return Way(text, chosen, of or None, settings, options, streamed == "on")


def _setting(text: str, part: str) -> tuple[str, Any]:
    name, equals, value = part.partition("=")
    if not equals or not name:
        raise ConfigError(f"--way {text}: expected NAME=VALUE behind '+', got {part!r}.")
    try:
        return name, decode(value)
    except NotJsonError:
        return name, value


def candidates(findings: Findings, *, tells: bool = False) -> list[Way]:
    """The ways that make sense for a server: those that work there, each with and without what could help it. For a
    gateway its own APIs. `tells`: the server reports the raw model output, so its parser can be compared with ours.
    """
    if findings.server == _GATEWAY:
        return [read_way(f"{DIRECT}:{wire}") for wire in WIRES]
    ways: list[Way] = []
    server = server_of(findings)
    dialect = findings.dialect
    if dialect is not None and raw_works(findings):
        ways += _both(f"raw:{dialect}", server_kind_of(server))
        ways += _thinking(f"raw:{dialect}", dialect, server_kind_of(server), thinks=findings.reasoning is not None)
    if findings.status(TOOLS_STREAMED) == "works" or findings.status(TOOLS) == "works":
        beside = [read_way(f"{REREAD}:{dialect}")] if tells and dialect not in (None, AUTO, TEMPLATE) else []
        ways += [read_way(f"{DIRECT}:chat"), *beside, _of("native", server)]
    if findings.status(CHAT) == "works":
        ways += [_of(f"prompt:{name}", server) for name in dict.fromkeys((dialect, UNKNOWN)) if name]
    return ways


def _thinking(name: str, dialect: str, server: str, *, thinks: bool) -> list[Way]:
    """The other way of a model that reasons or could: without, or with what its dialect leaves out by itself."""
    field = next((one for one in fields(get_dialect(dialect).options) if one.name == _THINKING), None)
    if field is None:
        return []
    values = get_args(get_type_hints(get_dialect(dialect).options)[_THINKING])
    if field.default == _OFF:
        other = next((one for one in values if one in ("open", "on")), "")
    else:
        other = _OFF if thinks else ""
    return [_of(f"{name}+{_THINKING}={other}", server)] if other in values else []


def _both(name: str, server: str) -> list[Way]:
    """With grammars for required calls, and without."""
    if server == "openai":
        return [_of(name, server)]
    return [_of(name, server), _of(f"{name}+constrain=off", server)]


def _of(name: str, server: str) -> Way:
    way = read_way(name)
    return replace(way, settings={"server": server, **way.settings})
