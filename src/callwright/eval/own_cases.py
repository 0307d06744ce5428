"""Cases of one's own: a YAML or TOML file, a JSONL file with a case a line, files of BFCL, or recorded turns.

A turn that `serve --record` has written becomes a case that requires the calls sent to the client then.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from callwright.errors import ConfigError, RequestError, reason_of
from callwright.eval.bfcl import bfcl_cases, is_bfcl
from callwright.eval.case import Case, Must, WantedCall
from callwright.eval.wanted import check_wanted
from callwright.eval.yaml_text import NotYamlError, read_yaml
from callwright.reading.collect import collect
from callwright.settings.errors import SlipError, read_settings
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.turn.records import Record
from callwright.turn.reread import RecordError, read_record, recorded_events
from callwright.wire.chat.request import read_request

_CHAT_FIELDS: Final = ("tools", "tool_choice", "parallel_tool_calls", "response_format")


class _File(Struct, forbid_unknown_fields=True):
    """A YAML or TOML file: cases, and the tools of those that have none, or the JSON file that has these tools."""

    cases: tuple[Case, ...]
    tools: tuple[dict[str, Any], ...] = ()
    tools_file: str | None = None


def read_cases(path: Path) -> list[Case]:
    """The cases of a file. Raises `ConfigError` that names the invalid case and the reason."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read {path}: {reason_of(error)}.") from error
    cases = list(_READERS.get(path.suffix, _toml)(path, text))
    if not cases:
        raise ConfigError(f"{path} has no cases.")
    seen: set[str] = set()
    for case in cases:
        where = f"{path}: case {case.id!r}"
        if case.id in seen:
            raise ConfigError(f"{where} is there twice: give one of them another id.")
        seen.add(case.id)
        _check(case, where)
    return cases


def _toml(path: Path, text: str) -> Iterator[Case]:
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}. Name files of other formats .yaml or .jsonl.") from error
    return _of_file(path, given)


def _yaml(path: Path, text: str) -> Iterator[Case]:
    try:
        given = read_yaml(text, str(path))
    except NotYamlError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}.") from error
    if not isinstance(given, Mapping):
        raise ConfigError(f"{path}: expected a mapping with cases in it, got {type(given).__name__}.")
    return _of_file(path, given)


def _of_file(path: Path, given: Mapping[str, Any]) -> Iterator[Case]:
    try:
        file = read_settings(given, _File)
    except SlipError as error:
        raise ConfigError(f"{path}: {error}") from error
    tools = file.tools
    if file.tools_file is not None:
        tools = (*tools, *_tools(path.parent / file.tools_file))
    for case in file.cases:
        yield case if case.tools else msgspec.structs.replace(case, tools=tools)


def _tools(path: Path) -> tuple[dict[str, Any], ...]:
    try:
        return decode(path.read_bytes(), tuple[dict[str, Any], ...])
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from error
    except NotJsonError as error:
        raise ConfigError(f"{path}: expected a JSON list of tools: {error}.") from error


def _lines(path: Path, text: str) -> Iterator[Case]:
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        try:
            given = decode(line)
        except NotJsonError as error:
            raise ConfigError(f"{where} is not valid JSON: {error}.") from error
        if isinstance(given, Mapping) and is_bfcl(given):
            yield from bfcl_cases(path, lines)
            return
        if not isinstance(given, Mapping):
            raise ConfigError(f"{where}: expected a case or a recorded turn, got {type(given).__name__}.")
        if "attempts" in given:
            case = _recorded(line, f"{path.stem}:{number}", where)
            if case is not None:
                yield case
            continue
        try:
            yield read_settings(given, Case)
        except SlipError as error:
            raise ConfigError(f"{where}: {error}") from error


_READERS: Final[Mapping[str, Callable[[Path, str], Iterator[Case]]]] = {
    ".toml": _toml,
    ".yaml": _yaml,
    ".yml": _yaml,
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _lines),
}


def _recorded(line: str, id_: str, where: str) -> Case | None:
    """The case of a recorded turn; None for one that failed, was cut, or was not asked over Chat Completions."""
    try:
        record = read_record(line)
        body = record.request
        if record.error or record.is_cut or not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            return None
        read_request({**body, "model": "any"})
        calls = _calls(record)
    except RecordError as error:
        raise ConfigError(f"{where}: {error}.") from error
    except RequestError:  # a request of another API, whose messages are others
        return None
    fields = {name: body[name] for name in _CHAT_FIELDS if body.get(name) is not None}
    given = {"id": record.request_id or id_, "group": "recorded", "messages": body["messages"], **fields, "must": {}}
    return msgspec.structs.replace(msgspec.convert(given, Case), must=Must(calls=calls))


def _calls(record: Record) -> tuple[WantedCall, ...]:
    turn = collect(recorded_events(record.attempts[-1])) if record.attempts else None
    calls = turn.calls if turn is not None else ()
    try:
        return tuple(
            WantedCall(
                call.name,
                {"input": call.arguments} if call.kind == "custom" else decode(call.arguments, dict[str, Any]),
            )
            for call in calls
        )
    except NotJsonError as error:
        raise RecordError(f"a call in it has no JSON as arguments: {error}") from error


def _check(case: Case, where: str) -> None:
    """Raise `ConfigError` for a case that could never be right, or always is."""
    if case.must.is_empty:
        raise ConfigError(f"{where}: must is empty. Add calls = [] for no call, or another condition.")
    if case.steps < 1:
        raise ConfigError(f"{where}: steps: expected 1 or more, got {case.steps}.")
    for call in case.must.calls or ():
        check_wanted(dict(call.arguments), f"{where}: must.calls.{call.name}")
    check_wanted([case.must.value, case.must.text, case.must.state], f"{where}: must")
    try:
        conversation = read_request({"model": "any", **case.request()}).conversation
    except RequestError as error:
        raise ConfigError(f"{where}: {error.param + ': ' if error.param else ''}{error}") from error
    known = [tool.name for tool in conversation.tools]
    named = [call.name for call in case.must.calls or ()]
    for name in (*named, *case.must.may, *case.effects):
        if name not in known:
            raise ConfigError(f"{where}: the tool {name!r} does not exist. Its tools: {', '.join(known) or 'none'}.")
