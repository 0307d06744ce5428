"""The part of a prompt that describes the tools: a function, a layout, or plain words."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import Struct

from callwright.conversation import Conversation, FunctionTool
from callwright.dialects.base import RenderOptions
from callwright.dialects.prompts.in_words import put_example, tell_tools, tool_lines
from callwright.dialects.prompts.kept_parts import put_tools
from callwright.dialects.prompts.layouts import Layout, compile_layout, put_each
from callwright.dialects.prompts.options import option_values
from callwright.layout.calls import CallLayout
from callwright.prompt import PromptBuilder

WriteTools: TypeAlias = Callable[[PromptBuilder, Conversation], object]
_SLOTS: Final = frozenset(("lines", "list", "functions", "example", "each"))
_OF_TOOL: Final[Mapping[str, Callable[[FunctionTool], str]]] = {
    "tool": lambda tool: tool.openai_json,
    "function": lambda tool: json.dumps(tool.openai["function"], ensure_ascii=False),
    "name": lambda tool: tool.name,
    "about": lambda tool: tool.about or "",
}


class ToolSection(Struct, frozen=True, kw_only=True, eq=False):
    """`write` appends it; a string is a layout, in which `tool` is that of each. None describes them in plain words."""

    write: str | WriteTools | None
    tool: str
    calls: CallLayout
    controls: tuple[str, ...]

    def needed(self, options: RenderOptions) -> RenderOptions | None:
        """The options if the section depends on them."""
        return options if isinstance(self.write, str) and self._layout(self.write).names - _SLOTS else None

    def show(self, conversation: Conversation, options: RenderOptions, out: PromptBuilder) -> None:
        """Append the section, which is cached for the next request."""
        put_tools(out, conversation, self.put, self.needed(options))

    def put(self, out: PromptBuilder, conversation: Conversation, options: RenderOptions | None) -> None:
        """Append the section."""
        if isinstance(self.write, str):
            layout = self._layout(self.write)
            values = self._values(conversation, layout.names)
            layout.put(out, values if options is None else {**option_values(options), **values})
        elif self.write is not None:
            self.write(out, conversation)
        else:
            tell_tools(out, conversation, self.calls, self.controls)

    def _layout(self, text: str) -> Layout:
        return compile_layout(text, self.controls)

    def _values(self, conversation: Conversation, names: frozenset[str]) -> dict[str, Any]:
        tools = conversation.tools
        values: dict[str, Any] = {}
        if "lines" in names:
            values["lines"] = tool_lines(conversation)
        if "list" in names:
            values["list"] = json.dumps([tool.openai for tool in tools], ensure_ascii=False)
        if "functions" in names:
            values["functions"] = json.dumps([tool.openai["function"] for tool in tools], ensure_ascii=False)
        if "example" in names:
            values["example"] = lambda out: put_example(out, self.calls, self.controls)
        if "each" in names:
            layout = self._layout(self.tool)
            each = [{name: _OF_TOOL[name](tool) for name in layout.names} for tool in tools]
            values["each"] = partial(put_each, layout, each, None)
        return values
