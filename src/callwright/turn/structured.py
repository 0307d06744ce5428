"""An answer whose text the request holds to a form (`response_format`): validation, and repair if possible.

A text that fits is sent as the model wrote it. In any other, the one JSON value that fits is extracted, from a fence or
from prose, after the same repairs as for arguments of calls. A truncated value is never completed. If the schema cannot
be compiled, any JSON is an answer, with the problem `answer_unchecked`.
"""

import json
from typing import Any, Final

from msgspec import Struct

from callwright.calls.repair import repair_arguments
from callwright.conversation import ResponseFormat
from callwright.events import Problem
from callwright.schema.resolve import wanted_type
from callwright.schema.validate import validator_of
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.tolerant_json.find import find_json
from callwright.tolerant_json.tree import Node

_ANY_OBJECT: Final = {"type": "object"}
_OPENERS: Final = {"object": "{", "array": "[", "string": '"'}
_MAX_TOLD: Final = 3
_BEGIN: Final = 40  # characters of invalid JSON in the message to the model, so that another text is another mistake


class JudgedAnswer(Struct, frozen=True):
    """The text that can be sent as the answer, and its problem; `text` is None without a value that fits."""

    text: str | None
    problem: Problem | None = None


class StructuredAnswer:
    """The form of one request. `is_demanded`: nothing else may be sent, for `strict` and `json_object`."""

    def __init__(self, form: ResponseFormat) -> None:
        self.is_demanded = form.type == "json_object" or bool(form.strict)
        self._schema = form.schema if form.schema is not None else _ANY_OBJECT
        self._validator = validator_of(self._schema)
        self._opener = _OPENERS.get(wanted_type(self._schema) or "")

    def may_begin(self, text: str) -> bool:
        """Whether an answer of this form can begin with this text."""
        begun = text.lstrip()[:1]
        return not begun or self._opener is None or begun == self._opener

    def is_answer(self, text: str) -> bool:
        """Whether a text is JSON of this form and nothing else."""
        return bool(text) and self._fault(text) is None

    def judge(self, text: str) -> JudgedAnswer:
        """Whether a whole text has the form. One that is not demanded is left as it is."""
        fault = self._fault(text)
        if fault is None:
            unread = self._validator.unread
            detail = f"the schema of the answer cannot be read: {unread}"
            return JudgedAnswer(text, Problem("answer_unchecked", detail) if unread else None)
        if self.is_demanded and (mended := self._repair(text)) is not None:
            return JudgedAnswer(mended, Problem("answer_repaired", fault, text=text))
        return JudgedAnswer(None, Problem("invalid_answer", fault))

    def _fault(self, text: str) -> str | None:
        """Why the text has not the form, in words for the model."""
        try:
            value = decode(text)
        except NotJsonError as error:
            begins = f"the answer is not valid JSON, it begins {text.strip()[:_BEGIN]!r}: {error}"
            return begins if text.strip() else "the answer is empty, and not JSON"
        faults = self._validator.faults(value)
        told = "; ".join(f"{fault.path}: {fault.message}" for fault in faults[:_MAX_TOLD])
        if not told and self.is_demanded and (names := _repeated(text)):
            told = f"{names[0]!r} is given twice, with different values"
        return f"the answer does not fit: {told}" if told else None

    def _repair(self, text: str) -> str | None:
        """The only value of the text that fits, as JSON text; None if it has none or several, or one is incomplete."""
        found: dict[str, Node] = {}
        for node in find_json(text):
            if not node.closed:
                return None
            made = repair_arguments(node, self._schema)[0]
            try:
                if self._validator.is_valid(made.value()) and not _repeated(made.text()):
                    found[made.text()] = made
            except NotJsonError:
                continue
        return next(iter(found)) if len(found) == 1 else None


def _repeated(text: str) -> list[str]:
    """The names in a JSON text that one object has twice, with different values: ambiguous."""
    found: list[str] = []

    def noted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for name, value in pairs:
            if given.setdefault(name, value) != value:
                found.append(name)
        return given

    try:
        json.loads(text, object_pairs_hook=noted)
    except (ValueError, RecursionError):
        return []
    return found
