"""Calls as named parameters between tags, declared: what is written, and with which tags it is read."""

from msgspec import Struct

from callwright.calls.toolset import Toolset
from callwright.dialects.call_layout import CallLayout
from callwright.dialects.readers.parameters import ParameterReader, ParameterTags
from callwright.stream_reader import Parse, StreamReader

__all__ = ["ParameterForm"]


class ParameterForm(Struct, frozen=True):
    """The calls of one format, which are written as its `layout` says; `thoughts` are the tags around reasoning, `ends`
    stop tokens.
    """

    layout: CallLayout
    tags: ParameterTags
    thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)
    ends: tuple[str, ...] = ()

    def parse(self, source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
        """See `CallFormat`."""
        return ParameterReader(source, tools, self.tags, thoughts=self.thoughts, ends=self.ends).read(start)
