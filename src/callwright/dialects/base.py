"""Dialects, and their lookup by name.

A dialect describes how one model family is prompted and how it writes calls. It is a value: `DIALECT` in a module of
`callwright.dialects`, whose name is the dialect's; only dialects derived from chat templates are added at runtime.
Packages of others bring theirs by the entry point `callwright.dialects`, whose name is the dialect's and whose object
is the value. It is loaded when it is asked for, and overrides none of ours.
"""

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from callwright.calls.history import HistoryRules, normalized
from callwright.calls.toolset import Toolset
from callwright.conversation import AssistantTurn, Conversation, FunctionTool, Message, TextPart
from callwright.dialects.tokenizers import TOKENIZERS, added_tokens
from callwright.errors import RequestError, nearest
from callwright.memo.prefixes import SharedList, fold, once
from callwright.prompt import Prompt, neutralise
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_format import CallFormat, ParsedBy, ReadBy, read_answer
from callwright.reading.text.foreign import Form, Formats
from callwright.schema.shown import ShownKeywords, hidden_keywords
from callwright.settings.errors import SlipError, read_settings
from callwright.streaming.reader import Parse, StreamReader

__all__ = [
    "FORMATS",
    "TEMPLATE_PREFIX",
    "CallFormat",
    "Dialect",
    "ParsedBy",
    "PromptFormat",
    "ReadBy",
    "RenderOptions",
    "TurnMarks",
    "add_dialect",
    "dialect_names",
    "form_of",
    "get_dialect",
    "read_options",
]


_NO_KEYWORDS: Final[frozenset[str]] = frozenset()


class RenderOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of every dialect. `add_generation_prompt`: end the prompt with the begin of an answer."""

    add_generation_prompt: bool = True

    def with_effort(self, level: str) -> "RenderOptions | None":
        """These options with the `reasoning_effort` of a request, in OpenAI's words; None if the format has no place
        for it. A dialect that knows other levels, or by another name, overrides this.
        """
        if "reasoning_effort" in self.__struct_fields__:
            return replace(self, reasoning_effort=level)
        if level == "none" and "thinking" in self.__struct_fields__:
            return replace(self, thinking="off")
        return None

    def slots(self) -> Mapping[str, Any]:
        """The slots of these options for layouts, in addition to the fields and their values."""
        return {}


class TurnMarks(msgspec.Struct, frozen=True, kw_only=True):
    """The marks around the parts of an answer, as `write` writes them; None: no marks.

    `thought` surrounds reasoning. `said` surrounds text before calls if a control token begins it, so that any text is
    possible there. `answer` surrounds text that is the whole answer, without the stop token. `controls` are the
    control tokens in a turn.
    """

    thought: tuple[str, str] | None = None
    said: tuple[str, str] | None = None
    answer: tuple[str, str] | None = None
    controls: tuple[str, ...] = ()


class PromptFormat(Protocol):
    """How a conversation is rendered for one family."""

    @property
    def marks(self) -> TurnMarks:
        """The marks around the parts of an answer."""

    def render(self, conversation: Conversation, options: Any) -> Prompt:
        """The whole prompt, for completion endpoints (mode raw)."""

    def messages(self, conversation: Conversation, options: Any) -> list[dict[str, Any]]:
        """Chat messages with the tools as text, for chat endpoints (mode prompt). They are shared: never modify
        them.
        """

    def write(self, turn: AssistantTurn) -> str:
        """The text that the model would write for a turn."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """The format of one model family.

    `aliases` are other names that engines and users know it by; `model_families` the families that use it, for people;
    `model_globs` the words of their models' names, in lower case with `-` between them (`qwen-3` finds `Qwen3-8B`);
    `*` matches any characters of a word, `^` and `$` the ends of a name; `model_options` the options of models
    with such names, and of an alias, if not the defaults; `template_markers` texts in their chat templates, ` + `
    between those that belong together; `history_rules` what those templates ask of calls in a history.
    `source` is the source of the format, `tokenizers` the names of the families' tokenizers in
    `callwright.dialects.tokenizers`: their control tokens, too, are escaped in texts.

    `stops` are the control tokens that end a raw completion, `stop_token_ids` their ids, empty where these differ by
    model; `stop_texts` are other texts that end it, which no reader knows: a server must remove them.
    `shown_keywords`: the keywords of a tool's schema that a prompt shows; None: all of them.

    `options` is the type of the options of `render` and `messages`. `is_slow`: to render takes milliseconds, whatever
    is rendered.
    """

    name: str
    aliases: tuple[str, ...] = ()
    model_families: str
    model_globs: tuple[str, ...] = ()
    model_options: Mapping[str, Mapping[str, object]] = {}
    template_markers: tuple[str, ...] = ()
    history_rules: HistoryRules = HistoryRules()
    source: str
    tokenizers: tuple[str, ...] = ()
    stops: tuple[str, ...]
    stop_token_ids: tuple[int, ...] = ()
    stop_texts: tuple[str, ...] = ()
    options: type[RenderOptions] = RenderOptions
    prompt: PromptFormat
    calls: CallFormat | ParsedBy
    is_slow: bool = False
    shown_keywords: ShownKeywords | None = None

    def __post_init__(self) -> None:
        unknown = sorted({*self.tokenizers} - {*TOKENIZERS})
        assert not unknown, f"{self.name}: {unknown} is in no table of callwright.dialects.tokenizers"

    def render(self, conversation: Conversation, options: Any) -> Prompt:
        """See `PromptFormat`. The prompt's `controls` are those of the format, and its `tokenizers`' tokens."""
        conversation = _normalized(conversation)
        with self._named_depth():
            prompt = self.prompt.render(conversation, options)
        return replace(prompt, controls=_with_tokens(prompt.controls, self.tokenizers), marks=prompt.controls)

    def messages(self, conversation: Conversation, options: Any) -> list[dict[str, Any]]:
        """See `PromptFormat`. The format has broken its own tokens in the texts; those of the tokenizers are here."""
        conversation = _normalized(conversation)
        own = _marks(self.prompt.render, options)
        controls = _with_tokens(own, self.tokenizers)
        with self._named_depth():
            return _all_broken(self.prompt.messages(conversation, options), controls, own)

    def hidden_keywords(self, tools: Sequence[FunctionTool]) -> frozenset[str]:
        """The keywords in the schemas of these tools that a prompt does not show."""
        shown = self.shown_keywords
        if shown is None or not tools:
            return _NO_KEYWORDS
        make = lambda: frozenset[str]().union(*[hidden_keywords(tool, shown) for tool in tools])  # noqa: E731
        return once(tools, "hidden keywords", make, shown)

    def write(self, turn: AssistantTurn) -> str:
        with self._named_depth():
            return self.prompt.write(turn)

    @contextmanager
    def _named_depth(self) -> Iterator[None]:
        """Raises `RequestError` for a schema or a value that is nested more deeply than it can be written."""
        try:
            yield
        except RecursionError:
            raise RequestError(
                f"A tool's schema, or a value in the messages, is nested too deeply to be written as {self.name!r} "
                "writes it. Nest it less deeply: some hundred levels are too many.",
                code="nested_too_deeply",
            ) from None

    def parse(self, source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
        """Read one output from `source` and emit its events; see `read_answer`."""
        return read_answer(self.calls, AnswerText(source, tools, self.calls.layout), start, FORMATS)

    def __reduce__(self) -> tuple[Any, ...]:
        """A dialect that has a name here is sent to other processes by its name."""
        if self.name in dialect_names() and get_dialect(self.name) is self:
            return get_dialect, (self.name,)
        return _make_dialect, ({field: getattr(self, field) for field in self.__struct_fields__},)


def _normalized(conversation: Conversation) -> Conversation:
    """The conversation with items that every template can show."""
    items = normalized(conversation.items)
    return conversation if items is conversation.items else replace(conversation, items=items)


@lru_cache(maxsize=256)
def _with_tokens(marks: tuple[str, ...], tokenizers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*marks, *(token for name in tokenizers for token in added_tokens(name))]))


@lru_cache(maxsize=256)
def _marks(render: Callable[[Conversation, Any], Prompt], options: Any) -> tuple[str, ...]:
    """The control tokens that a format writes."""
    return render(Conversation((Message("user", (TextPart("?"),)),)), options).controls


def _all_broken(
    messages: Sequence[dict[str, Any]], controls: tuple[str, ...], own: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Messages without look-alikes."""

    def more(before: list[dict[str, Any]], all_: Sequence[dict[str, Any]], start: int) -> list[dict[str, Any]]:
        return before + [_neutralise_message(message, controls, own) for message in all_[start:]]

    none: list[dict[str, Any]] = []
    # The first is the system message, which may differ from request to request.
    parts = (tuple(messages[:1]), tuple(messages[1:]))
    first, later = (fold(part, none, more, (controls, own), "without look-alikes") for part in parts)
    return SharedList(first + later)


def _neutralise_message(message: dict[str, Any], controls: tuple[str, ...], own: tuple[str, ...]) -> dict[str, Any]:
    match message.get("content"):
        case str(text):
            return {**message, "content": neutralise(text, controls, own)}
        case [*parts]:
            return {**message, "content": [_broken_part(part, controls, own) for part in parts]}
    return message


def _broken_part(part: dict[str, Any], controls: tuple[str, ...], own: tuple[str, ...]) -> dict[str, Any]:
    return {**part, "text": neutralise(part["text"], controls, own)} if part.get("type") == "text" else part


def _make_dialect(fields: dict[str, Any]) -> Dialect:
    return Dialect(**fields)


_ENTRY_POINTS = "callwright.dialects"
# What dialects are called that were found of a chat template.
TEMPLATE_PREFIX: Final = "template-"
_found: dict[str, Dialect] = {}
_NOT_DIALECTS = {"auto", "base", "detect", "prompts", "tokenizers"}


@cache
def dialect_names() -> tuple[str, ...]:
    """The names of all dialects, sorted; without their aliases."""
    return tuple(sorted({*_own_names(), *_of_others()}))


def add_dialect(dialect: Dialect) -> Dialect:
    """Make a dialect that was found while this runs known by its name, in this process; answers the one of this name,
    if there is one already.
    """
    return _found.setdefault(dialect.name, dialect)


@cache
def get_dialect(name: str) -> Dialect:
    """The dialect of this name or alias. Raises `RequestError`, which suggests the nearest name."""
    if name in _found:
        return _found[name]
    if name in dialect_names():
        return _load(name)
    for other in (*_own_names(), *_of_others()):
        if name in _load(other).aliases:
            return _load(other)
    meant = {word: other for other in dialect_names() for word in (other, *_load(other).aliases)}
    near = nearest(name, meant)
    hint = f" Did you mean {meant[near]!r}?" if near else ""
    if name.startswith(TEMPLATE_PREFIX):
        hint = " It was found of a chat template: name that (--template FILE)."
    raise RequestError(
        f"Unknown dialect {name!r}.{hint} Known dialects: {', '.join(dialect_names())}.",
        param="dialect",
        code="invalid_value",
    )


def read_options(dialect: str | Dialect, options: Mapping[str, object]) -> RenderOptions:
    """The options of a dialect, checked; an alias may bring its own. Raises `RequestError` for unknown names and wrong
    types.
    """
    given = dialect if isinstance(dialect, Dialect) else get_dialect(dialect)
    if isinstance(dialect, str):
        options = {**given.model_options.get(dialect, {}), **options}
    try:
        return read_settings(options, given.options)
    except SlipError as error:
        raise RequestError(
            f"Options of dialect {given.name!r}: {error}", param=error.path or None, code="invalid_value"
        ) from error


@cache
def _own_names() -> tuple[str, ...]:
    found = (module.name for module in pkgutil.iter_modules(sys.modules[__package__].__path__))
    return tuple(sorted(name for name in found if name not in _NOT_DIALECTS and not name.startswith("_")))


@cache
def _of_others() -> Mapping[str, EntryPoint]:
    """What other packages bring, by its name."""
    return {point.name: point for point in entry_points(group=_ENTRY_POINTS) if point.name not in _own_names()}


@cache
def _load(name: str) -> Dialect:
    if name in _own_names():
        found = importlib.import_module(f"callwright.dialects.{name}").DIALECT
    else:
        found = _of_others()[name].load()
    assert isinstance(found, Dialect), f"{name} is not a Dialect"
    assert found.name == name, f"{name} calls itself {found.name}"
    return found


def form_of(name: str, calls: CallFormat | ParsedBy, *, is_sure: bool = True) -> Form:
    """A format as it is read in the answers of others; see `Form`."""
    return Form(name, calls.layout, lambda text, start: read_answer(calls, text, start, FORMATS), is_sure)


def _forms() -> Sequence[Form]:
    """All formats: those of dialects, then those of none."""
    own = [form_of(name, get_dialect(name).calls) for name in dialect_names()]
    return (*own, *importlib.import_module("callwright.dialects._foreign").FORMS)


FORMATS: Final = Formats(_forms)
