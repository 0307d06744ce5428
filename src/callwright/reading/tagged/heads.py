"""The rest of an opening tag after its name: `="f" type="string"` in the forms that models give it."""

import re
from collections.abc import Collection, Iterable, Mapping

from callwright.calls.toolset import Toolset
from callwright.reading.arguments_writer import ArgumentsWriter
from callwright.schema.keywords import properties
from callwright.schema.resolve import TYPE_NAMES

# A name without quotes ends before the first attribute: `my tool type="x"`.
_BARE = re.compile(r"(?P<name>.*?)(?=(?<!\s)\s++[\w:.-]++=|\Z)", re.DOTALL)
_ATTRIBUTE = re.compile(r"""(?<![\w:.-])([\w:.-]++)\s*+=\s*+(?:"([^"]*)"|'([^']*)'|([^\s>]+))""")

# The attribute that models add in formats without any, with its values.
_ADDED = (("type", TYPE_NAMES),)

# The beginning of an element, and a name with the sign that precedes its value.
_ELEMENT = re.compile(r"<\w[\w:.-]*[\s=>]").search
_GIVEN = re.compile(r"""(?<![\w.-])([\w.-]++)["']?\s*+[:=]""").findall

# A name in quotes, in a tag on one line.
_QUOTED = re.compile(r"""\"[^"\n<]*\"|'[^'\n<]*'""").match

# Characters that hardly any key contains, but a tag around one does.
_ODD_KEY = re.compile(r"[\s<>=\"'“”&;]|/\w+>").search


def split_head(text: str, end: str, names: Collection[str]) -> tuple[str, str, str]:
    """A text in parts, as `partition` does: the rest of a tag, its `end`, and the text after it.

    A name in quotes, or one of `names`, may contain the end: `<parameter name="a>b">`.
    """
    begin = len(text) - len(text.lstrip())
    at = 0
    if quote := _QUOTED(text, begin):
        at = quote.end()
    else:
        at = max((len(name) for name in names if end in name and text.startswith(name + end)), default=0)
    head, closed, behind = text[at:].partition(end)
    return text[:at] + head, closed, behind


def may_be_longer(text: str, end: str, names: Collection[str]) -> bool:
    """Whether the name at the start of a text may contain the end of the tag: the rest has not arrived."""
    quote = text.lstrip()[:1]
    if quote and quote in "\"'":
        return not any(mark in text.lstrip()[1:] for mark in (quote, "\n", "<"))
    return any(len(text) <= len(name) and (name + end).startswith(text) for name in names if end in name)


def is_odd_key(key: str) -> bool:
    """Whether a text is unlikely to be the name of a parameter."""
    return _ODD_KEY(key) is not None


def attributes(head: str) -> tuple[str, Mapping[str, str]]:
    """The name and the attributes in the rest of an opening tag, as in `"f" type="string"`."""
    name, rest, _ = _parts(head)
    return name.strip(), {key: next(filter(None, values), "") for key, *values in _ATTRIBUTE.findall(rest)}


def surplus(head: str) -> str:
    """The part of the rest of an opening tag that is neither name nor attribute, or repeats the name."""
    name, rest, closed = _parts(head)
    if not closed:
        return f"{head.strip()[0]}{name}"
    if any(key == "name" for key, *_ in _ATTRIBUTE.findall(rest)):
        return rest.strip()
    return _ATTRIBUTE.sub("", rest).strip()


def unknown_attributes(head: str, own: Iterable[tuple[str, Collection[str]]] = ()) -> str:
    """The attributes in the rest of an opening tag that are not the format's `own`, or not with these values, and those
    that are given again with another value.
    """
    known = dict(own or _ADDED)
    rest = _parts(head)[1]
    found = [(one.group(), one[1], next(filter(None, one.groups()[1:]), "")) for one in _ATTRIBUTE.finditer(rest)]
    named = {key: value for _, key, value in found}
    return " ".join(written for written, key, value in found if value not in known.get(key, ()) or named[key] != value)


def _parts(head: str) -> tuple[str, str, bool]:
    """The name in the rest of an opening tag, the text after it, and whether the quote around the name is closed."""
    if head.isidentifier():  # as most are
        return head, "", True
    head = head.strip().removesuffix("/").rstrip()
    if head[:1] in ('"', "'"):
        name, closed, rest = head[1:].partition(head[0])
        return name, rest, bool(closed)
    bare = _BARE.match(head)
    assert bare is not None  # it matches always
    return bare["name"], head[bare.end() :], True


def may_be_parameters(text: str, declared: Collection[str]) -> bool:
    """Whether a text between the tags of a call may be parameters in another form."""
    return _ELEMENT(text) is not None or any(name in declared for name in _GIVEN(text))


def named_schema(writer: ArgumentsWriter, key: str, rest: Mapping[str, str]) -> object:
    """The schema of a value: the tool's, or if that names no type, the `type` of the value's tag."""
    schema = writer.schema(key)
    return {"type": rest["type"]} if rest.get("type") and writer.is_untyped(schema) else schema


def parameters_of(name: str, tools: Toolset) -> Collection[str]:
    """The parameters that the tool of this name declares; none if it is unknown."""
    tool = tools.get(tools.resolve_name(name))
    return properties(tool.parameters if tool else None)
