"""DeepSeek V4.1: DSML in `<｜DSML｜ calls>`, with a space before each name.

The prompt is that of V4 with these tags; nothing says otherwise. Source: DeepSeek-V4's encoding and
what engines read of V4.1; `_dsml.py` has what the versions share.
"""

from typing import Any, Final

from toolwright.conversation import AssistantTurn, Conversation
from toolwright.dialects._dsml import DsmlForm, DsmlOptions, DsmlReader, dsml_tags, render_dsml, tell_dsml, write_dsml
from toolwright.prompt import Prompt
from toolwright.source import Source, Steps
from toolwright.toolset import Toolset

__all__ = ["Options", "aliases", "messages", "models", "parse", "render", "source", "stop_token_ids", "stops", "write"]

aliases = ("deepseekv41",)
models = "DeepSeek V4.1"
names = ("deepseek-v4.1*",)
template = ("｜DSML｜ calls",)
source = "DeepSeek-V4 encoding with the tags of V4.1"
stops = ("<｜end▁of▁sentence｜>",)
stop_token_ids = ()

_HOW_TO: Final = """## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a \
"<｜DSML｜ calls>" block like the following:

<｜DSML｜ calls>
<｜DSML｜ invoke name="$TOOL_NAME">
<｜DSML｜ parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜ parameter>
...
</｜DSML｜ invoke>
<｜DSML｜ invoke name="$TOOL_NAME2">
...
</｜DSML｜ invoke>
</｜DSML｜ calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, \
objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> \
BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

"""
_TAGS: Final = dsml_tags(" calls", " ")
_KIN: Final = dsml_tags("tool_calls", "")
_FORM: Final = DsmlForm(
    calls=" calls",
    lead=" ",
    how_to=(
        _HOW_TO,
        "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n",
    ),
    results=("", "<tool_result>", "</tool_result>", "\n\n", ""),
    keeps=True,
)


class Options(DsmlOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `off` with a closed, empty one."""


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt. With tools all reasoning stays, without only that behind the last question."""
    return render_dsml(_FORM, conversation, options)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return tell_dsml(_FORM, conversation)


def parse(source: Source, start: str, tools: Toolset) -> Steps[None]:
    """Events of an output. `start`: `reasoning` when the prompt left `<think>` open."""
    return DsmlReader(source, tools, _TAGS, _KIN).read(start)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for all calls."""
    return write_dsml(_FORM, turn)
