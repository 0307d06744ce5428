"""Renders calls and tools in formats with a name and elements for keys and values; see `reading.tagged.key_values`."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct

from callwright.layout.calls import CallLayout, TaggedArguments

LINES: Final = ("\n", "\n", "\n")


class KeyValueTags(Struct, frozen=True):
    """The tags of one format, and the white space between them.

    `name_end` follows a name, `blocks` surround calls, `types` (a pair) a type between key and value; each of these and
    `value` may be missing. `gaps` are written before a key, before a value and before the end of a call,
    `name_gap` after a name, `between` between calls. `LINES` as `gaps` puts each on its own line.
    """

    call: str = "<tool_call>"
    call_end: str = "</tool_call>"
    key: str = "<arg_key>"
    key_end: str = "</arg_key>"
    value: str = "<arg_value>"
    value_end: str = "</arg_value>"
    name_end: str = ""
    types: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str], ...] = ()
    gaps: tuple[str, str, str] = ("", "", "")
    name_gap: str = ""
    between: str = ""

    @property
    def layout(self) -> CallLayout:
        """Calls as they are written, in their block if the format has one."""
        return _layout(self)

    @property
    def values(self) -> tuple[str, ...]:
        """The opening tag of a value, if the format has one."""
        return (self.value,) if self.value else ()

    @property
    def literals(self) -> tuple[str, ...]:
        """All tags; in the vocabularies of these models they are tokens."""
        frames = (*(tag for block in self.blocks for tag in block), self.call, self.call_end)
        elements = (self.key, self.key_end, *self.values, self.value_end, *self.types)
        return (*frames, *filter(None, (self.name_end,)), *elements)


@cache
def _layout(tags: KeyValueTags) -> CallLayout:
    before_key, before_value, before_end = tags.gaps
    return CallLayout(
        open="".join(begin + tags.between for begin, _ in tags.blocks),
        begin=f"{tags.call}${{name}}{tags.name_end}{tags.name_gap}",
        arguments=TaggedArguments(
            begin=f"{before_key}{tags.key}${{key}}{tags.key_end}{before_value}{tags.value}", end=tags.value_end
        ),
        end=before_end + tags.call_end,
        between=tags.between,
        close="".join(tags.between + end for _, end in tags.blocks),
    )


def show_tools(tags: KeyValueTags, lead: str = "For each function call, output") -> str:
    """The layout that shows the tools as JSON lines, and how to call them."""
    before_key, before_value, before_end = tags.gaps
    parameters = "".join(
        f"{before_key}{tags.key}{{arg-key-{number}}}{tags.key_end}"
        f"{before_value}{tags.value}{{arg-value-{number}}}{tags.value_end}"
        for number in (1, 2)
    )
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n$lines\n"
        f"</tools>\n\n{lead} the function name and arguments within the following XML format:\n"
        f"{tags.layout.open}{tags.call}{{function-name}}{tags.name_end}{parameters}"
        f"{before_key}...{before_end}{tags.call_end}{tags.layout.close}"
    )


def write_turns(tags: KeyValueTags, think: str = "think") -> Mapping[str, Any]:
    """The shared entries in the tables of these formats: the output of the model, and its chat messages."""
    between = tags.between
    return {
        "calls": tags.layout,
        "written": f"«<{think}>$thought</{think}>{between}»$text«text calls¦{between}»$calls",
        "notes_choice": False,
        "chat_tools": show_tools(tags),
        "chat_output": "<tool_response>\n$text\n</tool_response>",
        "chat_between": "\n",
    }
