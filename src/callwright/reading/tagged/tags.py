"""The tags of a format whose values are plain text between tags: `<function=f><parameter=k>v</parameter>`."""

import re

from msgspec import Struct

from callwright.layout.calls import CallLayout, TaggedArguments
from callwright.schema.resolve import TYPE_NAMES


class ParameterTags(Struct, frozen=True):
    """The tags of one format. The tags `call` and `parameter` are followed by a name, up to `end`.

    `blocks` are pairs of tags around calls. `lines`: one line break on each side of a value belongs to the format.
    `gap` are the line breaks after a value's closer. `inner` are further tags between the name of a parameter and its
    value. `control`: the tags are tokens of their own, which users do not type. `attributes` are those of a parameter's
    tag besides the name, each with its values.
    """

    call: str
    call_end: str
    parameter: str
    parameter_end: str
    blocks: tuple[tuple[str, str], ...] = ()
    lines: bool = False
    gap: str = ""
    end: str = ">"
    inner: tuple[str, ...] = ()
    control: bool = True
    attributes: tuple[tuple[str, frozenset[str]], ...] = ()

    @classmethod
    def of(
        cls, layout: CallLayout, *, blocks: tuple[tuple[str, str], ...] | None = None, control: bool = True
    ) -> "ParameterTags":
        """The tags in a layout. `blocks`: required if they are not all the text around a call."""
        arguments = layout.arguments
        assert isinstance(arguments, TaggedArguments), "the arguments are between tags"
        head, tail = layout.open + layout.begin, layout.end + layout.close
        call, parameter, call_end = _NAMED.search(head), _NAMED.search(arguments.begin), _TAG.search(tail)
        assert call is not None, "a tag names the tool"
        assert parameter is not None, "a tag names the parameter"
        assert call_end is not None, "a tag ends the call"
        around = (head[: call.start()].strip(), tail[call_end.end() :].strip())
        return cls(
            call=call["tag"],
            call_end=call_end.group(),
            parameter=parameter["tag"],
            parameter_end=arguments.end.strip(),
            blocks=blocks if blocks is not None else (around,) if any(around) else (),
            lines=arguments.begin.endswith("\n") and arguments.end.startswith("\n"),
            gap=_gap_of(arguments),
            control=control,
            attributes=tuple(
                (name, frozenset(map(arguments.type_word, TYPE_NAMES)) if value == "${type}" else frozenset((value,)))
                for name, value in _ATTRIBUTE.findall(arguments.begin)
                if value != "${key}"
            ),
        )


def _gap_of(arguments: TaggedArguments) -> str:
    """The white space between the closer of a value and the tag of the next."""
    behind = arguments.end.lstrip() + arguments.between + arguments.begin
    found = _GAP.match(behind)
    return found["gap"] if found else ""


# A closer, and the white space after it.
_GAP = re.compile(r"<[^<>]*>(?P<gap>\s*)")
# In a layout: a tag up to its name, without the quote before the name; any tag.
_NAMED = re.compile(r"""(?P<tag><[^<>]*?)["']?\$\{(?:name|key)\}""")
_TAG = re.compile(r"<[^<>]*>")
_ATTRIBUTE = re.compile(r"""\s([\w:.-]+)=["']?([^\s"'<>]+)""")
