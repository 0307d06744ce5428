"""Cases of the Berkeley Function Calling Leaderboard, read from the user's copy of its files.

A file has a JSON object a line: `id`, `question` (turns of messages) and `function` (tools, with types of their own
names). The expected calls are in `possible_answer/` under the same name: for each call its arguments, each with the
accepted values, `""` among them if it may be left out. If no call is right (`irrelevance`) or any call will do
(`relevance`), there is no such file. As in the leaderboard's own check, texts are equal without case, spaces and some
punctuation.

Only categories decided by the calls alone are read. Those of languages other than Python, of several turns, and those
with execution or search need the leaderboard's own programs.
Source: berkeley-function-call-leaderboard in github.com/ShishirPatil/gorilla, TEST_CATEGORIES.md and ast_checker.py.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from callwright.errors import ConfigError, reason_of
from callwright.eval.case import Case, Json, Must, WantedCall
from callwright.eval.wanted import ABSENT
from callwright.tolerant_json.codec import NotJsonError, decode

_ANSWERS: Final = "possible_answer"
_READ: Final = (
    *("simple", "simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance"),
    *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance", "live_relevance"),
)
_CATEGORY: Final = re.compile(r"(?P<category>[a-z_]+?)_\d")
# The leaderboard's own names of types; one that is not here is a text.
_TYPES: Final = {
    "dict": "object",
    "object": "object",
    "array": "array",
    "list": "array",
    "tuple": "array",
    "float": "number",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
}
_KEPT: Final = ("type", "description", "properties", "required", "items", "enum")


class _Question(Struct):
    id: str
    question: Sequence[Sequence[Json]]
    function: Sequence[Json] | Json


class _Answer(Struct):
    id: str
    ground_truth: Sequence[Mapping[str, Mapping[str, Sequence[Any]]]]


def is_bfcl(given: Mapping[str, Any]) -> bool:
    """Whether a line of a file is one of the leaderboard's."""
    return "question" in given and "function" in given


def bfcl_cases(path: Path, lines: Sequence[str]) -> Iterator[Case]:
    """The cases of a file of the leaderboard. Raises `ConfigError`."""
    answers: dict[str, _Answer] = {}
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        asked = _read(line, _Question, where)
        found = _CATEGORY.match(asked.id)
        category = found["category"] if found else asked.id
        if category not in _READ:
            raise ConfigError(f"{where}: BFCL's category {category!r} is not read. Read are: {', '.join(_READ)}.")
        if len(asked.question) != 1:
            raise ConfigError(f"{where}: expected one turn in question, got {len(asked.question)}.")
        if "relevance" in category:
            must = Must(calls=()) if "irrelevance" in category else Must(some=True)
        else:
            answers = answers or _answers(path)
            if asked.id not in answers:
                raise ConfigError(f"{path.parent / _ANSWERS / path.name} has no answer for {asked.id!r}.")
            must = Must(calls=tuple(map(_wanted_call, answers[asked.id].ground_truth)))
        tools = [asked.function] if isinstance(asked.function, Mapping) else asked.function
        yield Case(
            id=asked.id,
            group=category,
            messages=tuple(asked.question[0]),
            tools=tuple(_tool(tool, where) for tool in tools),
            must=must,
        )


def _answers(path: Path) -> dict[str, _Answer]:
    beside = path.parent / _ANSWERS / path.name
    try:
        lines = beside.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        told = reason_of(error)
        raise ConfigError(f"{path} is one of BFCL's: its answers are looked for in {beside}, but: {told}.") from error
    read = (_read(line, _Answer, f"{beside}:{number}") for number, line in enumerate(lines, 1) if line.strip())
    return {answer.id: answer for answer in read}


def _read(line: str, kind: Any, where: str) -> Any:
    try:
        return msgspec.convert(decode(line), kind)
    except (NotJsonError, msgspec.ValidationError) as error:
        raise ConfigError(f"{where}: expected a line of BFCL: {error}.") from error


def _tool(given: Json, where: str) -> dict[str, Any]:
    name, parameters = given.get("name"), given.get("parameters")
    if not isinstance(name, str):
        raise ConfigError(f"{where}: function: expected a name, got {name!r}.")
    function = {"name": _name(name), "description": str(given.get("description", ""))}
    return {"type": "function", "function": {**function, "parameters": _schema(parameters or {"type": "dict"})}}


def _name(name: str) -> str:
    """OpenAI's API has no dots in names."""
    return name.replace(".", "_")


def _schema(given: Json) -> dict[str, Any]:
    """A schema in JSON Schema's words. Other keys, such as a default, are added to the description."""
    schema = {name: value for name, value in given.items() if name in _KEPT}
    schema["type"] = _TYPES.get(str(given.get("type")), "string")
    if isinstance(given.get("properties"), Mapping):
        schema["properties"] = {name: _schema(inner) for name, inner in given["properties"].items()}
    if isinstance(given.get("items"), Mapping):
        schema["items"] = _schema(given["items"])
    if not isinstance(given.get("required", []), list):
        del schema["required"]
    rest = [f"{name}: {value}." for name, value in given.items() if name not in _KEPT]
    if rest:
        schema["description"] = " ".join([str(given.get("description", "")), *rest]).strip()
    return schema


def _wanted_call(given: Mapping[str, Mapping[str, Sequence[Any]]]) -> WantedCall:
    ((name, arguments),) = given.items()
    return WantedCall(_name(name), {key: _one_of(values) for key, values in arguments.items()})


def _one_of(values: Sequence[Any]) -> dict[str, Any]:
    """Any of the values; `""` among them means that the argument may be left out."""
    rights = [_right(value) for value in values]
    return {"$one_of": [*rights, dict(ABSENT)] if "" in values else rights}


def _right(value: Any) -> Any:
    """A value that is right. In an object, and in those of a list, each field has its values."""
    if isinstance(value, Mapping):
        return {key: _one_of(of) if isinstance(of, list) else _exactly(of) for key, of in value.items()}
    if isinstance(value, list):
        return [_right(one) if isinstance(one, Mapping) else _exactly(one) for one in value]
    return _exactly(value)


def _exactly(value: Any) -> Any:
    return {"$loosely": value} if isinstance(value, str) else value
