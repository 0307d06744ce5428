"""Error messages of servers: the body of an error, or an event in place of an answer, whatever its form.

Handles the forms of OpenAI, Anthropic and Google, FastAPI and pydantic, Spring and NestJS, TGI, SGLang and RFC 9457.
Knows JSON and no HTTP: the status decides whose fault it is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from callwright.errors import RequestError
from callwright.tolerant_json.codec import NotJsonError, encode
from callwright.upstreams.answers import UnreadableError, read_json

# The code of OpenAI, and of those who follow it, for a conversation that is too long.
_CONTEXT_EXCEEDED: Final = "context_length_exceeded"
# The words for it of vLLM, SGLang, llama.cpp, LM Studio, TGI.
_TOO_LONG_WORDS: Final = re.compile(
    r"maximum context length|model's context length|context window|available context size"
    r"|Context size has been exceeded|greater than the context length|context the overflows"
    r"|`inputs` tokens \+ `max_new_tokens` must be|`inputs` must have less than"
)
_MAX_VALUES: Final = 1_048_576
_MAX_PLAIN: Final = 500
_MAX_NESTED: Final = 8  # levels of an error in which its words are looked for
_NOTHING: Final = "(nothing)"
# Fields with an error's message, the most informative first. A text under `error` may be only the name of the status.
_WORDS: Final = ("message", "msg", "detail", "errors", "error_description", "title")
# Prefix of a field's path in servers' messages.
_ROOTS: Final = ("body", "$")


class Reported(Struct, frozen=True):
    """An error as a server reports it.

    `words` is its whole message, `code` its own code, and `field` the first step of the path of the request's field
    that it names. `is_json`: it arrived as JSON.
    """

    words: str
    code: str | None = None
    field: str | None = None
    is_json: bool = True

    @property
    def is_too_long(self) -> bool:
        """Whether the message reports an exceeded context window. Later text is ignored, as it may be quoted."""
        return self.code == _CONTEXT_EXCEEDED or _TOO_LONG_WORDS.search(self.words, 0, _MAX_PLAIN) is not None


class _Event(Struct):
    """Fields that distinguish an error from an answer."""

    error: Any = None
    object: Any = None
    type: Any = None
    choices: Any = None
    message: Any = None
    msg: Any = None
    detail: Any = None
    errors: Any = None


def reported(body: bytes | bytearray, *, says_json: bool = False) -> Reported:
    """The error in a body. `says_json`: its content type is JSON. What then begins as JSON is JSON: of a long one only
    the begin was read.
    """
    try:
        return _read(read_json(body, Any, _MAX_VALUES))
    except (NotJsonError, UnreadableError):
        begins_so = bytes(body[:64]).lstrip()[:1] in (b"{", b"[")
        return Reported(plain(body), is_json=says_json and begins_so)


def maybe_reported(data: bytes | bytearray, mark: bytes, most_values: int) -> Reported | None:
    """The error in an event or a whole answer of status 200, if it is one.

    It is under `error`, or the whole object if its type is an error. `mark` appears in each answer; empty if unknown.
    With a mark, the `error` of a choice and text without the mark are errors, too. Raises `UnreadableError` if they
    have no message.
    """
    try:
        event = read_json(data, _Event, most_values)
    except NotJsonError:
        return None
    of_choice = next(_choice_errors(event.choices), None) if mark else None
    if event.error or "error" in (event.object, event.type):
        return reported(data)
    if of_choice is not None:
        return _read({"error": of_choice})
    if mark in data or not (event.message or event.msg or event.detail or event.errors):
        return None
    found = read_json(data, Any, most_values)
    if not _words(found):
        raise UnreadableError(f"sent an event that its API does not know: {plain(data)}")
    return _read(found)


def maybe_too_long(told: str) -> RequestError | None:
    """The `RequestError` for an exceeded context window, if a server's message reports one."""
    return too_long(told) if _TOO_LONG_WORDS.search(told) else None


def too_long(told: str) -> RequestError:
    """The `RequestError` for an exceeded context window, with the server's message."""
    return RequestError(
        f"Your input exceeds the context window of this model. Please adjust your input and try again. (The server "
        f"says: {told}.)",
        param="messages",
        code=_CONTEXT_EXCEEDED,
    )


def plain(body: bytes | bytearray) -> str:
    """The readable text of a body that is no JSON, without HTML tags."""
    text = re.sub(r"<[^>]{0,200}>", " ", body.decode(errors="replace"))
    return " ".join(text.split())[:_MAX_PLAIN] or _NOTHING


def _read(answer: object) -> Reported:
    fields = _fields(answer)
    code = fields.get("code")
    return Reported(
        _words(answer) or _write_json(answer), code if isinstance(code, str) and code else None, _field(answer)
    )


def _fields(answer: object) -> Mapping[str, Any]:
    """The object in which an error has its code."""
    if isinstance(answer, list) and answer:  # Google's are in a list
        answer = answer[0]
    inner = answer.get("error") if isinstance(answer, dict) else None
    found = inner if isinstance(inner, dict) and inner else answer
    return found if isinstance(found, dict) else {}


def _words(failure: object, depth: int = 0) -> str:
    """The message of an error in any form: servers nest it, and some send a list of messages. Empty if it has none."""
    if depth > _MAX_NESTED:
        return "…"
    match failure:
        case str():
            return failure.strip().rstrip(".")
        case list():
            return "; ".join(filter(None, (_words(each, depth + 1) for each in failure)))
        case dict():
            return _words_of(failure, depth)
        case float() | int() if not isinstance(failure, bool):
            return _write_json(failure)
    return ""


def _words_of(failure: Mapping[str, Any], depth: int) -> str:
    error = failure.get("error")
    if isinstance(error, dict | list) and (words := _words(error, depth + 1)):
        return words
    label = _words(error, depth + 1) if isinstance(error, str) else ""
    said = (_words(failure[key], depth + 1) for key in _WORDS if key in failure)
    words = next(filter(None, said), "")
    place = failure.get("loc")
    if words and isinstance(place, list) and place:  # pydantic's form
        return f"{_path(place)}: {words}"
    return f"{label}: {words}" if label and words and label not in words else words or label


def _write_json(value: object) -> str:
    """An error without a message, as JSON."""
    if not value and not isinstance(value, int | float):
        return _NOTHING
    try:
        return encode(value).decode()
    except RecursionError:
        return "…"


def _choice_errors(choices: object) -> Iterator[object]:
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("error"):
            yield choice["error"]


def _field(answer: object) -> str | None:
    """The field of the request that an error names: under `param`, or the first location in a pydantic error."""
    param = _fields(answer).get("param")
    if isinstance(param, str):
        return _first_step(re.split(r"[.\[\]]", param))
    place = next(_places(answer), None)
    return None if place is None else _first_step(place)


def _places(failure: object, depth: int = 0) -> Iterator[Sequence[object]]:
    """Each `loc` of an error."""
    if depth > _MAX_NESTED:
        return
    if isinstance(failure, list):
        for each in failure:
            yield from _places(each, depth + 1)
    elif isinstance(failure, dict):
        place = failure.get("loc")
        if isinstance(place, list) and place:
            yield place
        for key in ("error", *_WORDS):
            yield from _places(failure.get(key), depth + 1)


def _within(place: Sequence[object]) -> Sequence[object]:
    """A place without the root that some servers put before it."""
    return place[1:] if len(place) > 1 and place[0] in _ROOTS else place


def _first_step(place: Sequence[object]) -> str | None:
    first = _within(place)[0]
    return first if isinstance(first, str) and first else None


def _path(place: Sequence[object]) -> str:
    """A place as OpenAI writes it: `messages[0].content`."""
    steps = [f"[{step}]" if type(step) is int else f".{_words(step)}" for step in _within(place)]
    return "".join(steps).removeprefix(".")
