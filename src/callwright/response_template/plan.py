"""The search patterns for an output, compiled once for a template: outside all fields, and in each of them."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from callwright.response_template.declaration import Delimiter, Field, Template
from callwright.response_template.pattern import Pattern, compile_pattern
from callwright.response_template.watch import Watch
from callwright.tolerant_json.markers import END_TOKENS
from callwright.tolerant_json.passthrough import JsonTerminators

# `open` begins a field and `close` ends it; `lone` is the end of one that has not begun, `end` the end of the answer; a
# `token` is structure that belongs to no field, `next` begins another call if the end of one is missing.
_Kind: TypeAlias = Literal["open", "close", "lone", "end", "token", "next"]


class Mark(NamedTuple):
    """The meaning of a delimiter, and its field."""

    kind: _Kind
    field: Field | None = None


@cache
def _ends() -> Pattern:
    """Tokens that end an answer."""
    return compile_pattern(r"(?:(?:" + "|".join(token.replace("|", r"\|") for token in END_TOKENS) + r")\s*)+$")


@cache
def _control() -> Pattern:
    """A control token of whatever meaning."""
    return compile_pattern(r"<\|[\w.:-]+\|>")


_What: TypeAlias = tuple[Mark, Pattern | Sequence[str]]


class ReadingPlan:
    """The watches of a template. Those of a field go by its name."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.anchor: Watch[None] = Watch([(None, template.anchor.what)])
        self.outside: Watch[Mark] = Watch(list(_outside(template)))
        self.inside = {field.name: Watch(list(_inside(template, field))) for field in template.fields}
        self.closes = {field.name: Watch(list(_close(field))) for field in template.fields}
        self.ends = {field.name: Watch([*_close(field), *_next(template)]) for field in template.fields}
        self.tags = {field.name: _tags(template, field) for field in template.fields if field.tag}
        begins = [text for field in template.fields if field.open for text in field.open.begins]
        self.begins = (*begins, *END_TOKENS)
        self.stops = {field.name: _stops(template, field) for field in template.of("calls")}


def _outside(template: Template) -> Iterator[_What]:
    """Between the fields: without a field for the text there, tokens in it are structure."""
    opening = [field for field in template.fields if field.open]
    known = {text for field in opening if field.open for text in field.open.texts}
    for field in opening:
        assert field.open is not None
        yield Mark("open", field), field.open.what
    implicit = template.implicit
    if implicit and implicit.close:
        yield Mark("close", implicit), implicit.close.what
        known |= set(implicit.close.texts)
    closing = [field for field in opening if field.close and field.role in ("reasoning", "calls")]
    shared = [text for field in opening if field.close for text in field.close.texts]
    for field in closing:
        assert field.close is not None
        own = [text for text in field.close.texts if shared.count(text) == 1 and text not in known]
        yield Mark("lone", field), own
    yield Mark("end"), _ends()
    if implicit is None:
        yield Mark("token"), (*shared, *template.anchor.texts, *END_TOKENS)
        yield Mark("token"), _control()


def _inside(template: Template, field: Field) -> Iterator[_What]:
    """In a field of text; in a thought a call may begin."""
    yield from _close(field)
    if field.role == "reasoning":
        own = field.open.texts if field.open else ()
        for other in template.of("calls"):
            assert other.open is not None
            if not set(own) & set(other.open.texts):
                yield Mark("open", other), other.open.what
    yield Mark("end"), _ends()


def _close(field: Field) -> Iterator[_What]:
    if field.close:
        yield Mark("close", field), field.close.what


def _next(template: Template) -> Iterator[_What]:
    """The beginning of another call."""
    for field in template.of("calls"):
        if field.open and field.open.what:
            yield Mark("next", field), field.open.what


def _tags(template: Template, field: Field) -> tuple[Watch[Mark], Watch[Mark]] | None:
    """Before and in the values of a field's tags; None when the tags must be read as a whole."""
    around = field.tag.around if field.tag else None
    if around is None or "key" not in around.before.names:
        return None
    if any(pattern.may_be_empty for pattern in (around.before, around.behind)):
        return None
    before = Watch([(Mark("open"), around.before), *_close(field), *_next(template)])
    inside = Watch([(Mark("open"), around.behind), *_close(field)])
    return before, inside


def _stops(template: Template, field: Field) -> JsonTerminators | None:
    """The end of JSON in a field that does not end itself; None if it cannot be recognized while streaming."""
    if field.close and field.close.stops is None:
        return None
    delimiters: list[Delimiter] = [field.close] if field.close else []
    opens = [other.open for other in template.fields if other.open]
    literals = tuple(text for each in [*delimiters, *opens] for text in each.stops or ())
    if not field.close:
        return JsonTerminators(*literals)
    begins = tuple(text for text in (*literals, *END_TOKENS) if text not in (field.close.stops or ()))
    return JsonTerminators(*literals, then=begins)
