"""DeepSeek V3.2: DSML in `<｜DSML｜function_calls>`.

Outputs stand behind the calls, outside any turn. Source: the chat template of DeepSeek-V3.2 that llama.cpp bundles;
`_dsml.py` has what the versions share.
"""

from typing import Any, Final

from toolwright.conversation import AssistantTurn, Conversation
from toolwright.dialects._dsml import DsmlForm, DsmlOptions, DsmlReader, dsml_tags, render_dsml, tell_dsml, write_dsml
from toolwright.prompt import Prompt
from toolwright.source import Source, Steps
from toolwright.toolset import Toolset

__all__ = ["Options", "aliases", "messages", "models", "parse", "render", "source", "stop_token_ids", "stops", "write"]

aliases = ("deepseekv32",)
models = "DeepSeek V3.2"
names = ("deepseek-v3.2*",)
template = ("｜DSML｜ + function_calls",)
source = "chat template of DeepSeek-V3.2 (llama.cpp models/templates)"
stops = ("<｜end▁of▁sentence｜>",)
stop_token_ids = ()

_HOW_TO: Final = """## Tools

You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<｜DSML｜function_calls>" block like the following as part of your reply to the \
user:
<｜DSML｜function_calls>
<｜DSML｜invoke name="$FUNCTION_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$FUNCTION_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜function_calls>

String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should \
use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types \
(numbers, booleans, arrays, objects).

If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. \
Here is an example:

<｜DSML｜function_calls>
...
</｜DSML｜function_calls>

<function_results>
...
</function_results>

<think>...thinking about results</think>

Here are the functions available in JSONSchema format:
<functions>
"""
_TAGS: Final = dsml_tags("function_calls", "")
_FORM: Final = DsmlForm(
    calls="function_calls",
    lead="",
    how_to=(_HOW_TO, "\n</functions>\n"),
    results=("\n\n<function_results>\n", "<result>", "</result>", "\n", "\n</function_results>"),
    inline=True,
)


class Options(DsmlOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `off` with a closed, empty one."""


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt. Reasoning before the last question is dropped, as the template does."""
    return render_dsml(_FORM, conversation, options)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return tell_dsml(_FORM, conversation)


def parse(source: Source, start: str, tools: Toolset) -> Steps[None]:
    """Events of an output. `start`: `reasoning` when the prompt left `<think>` open."""
    return DsmlReader(source, tools, _TAGS).read(start)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for all calls."""
    return write_dsml(_FORM, turn)
