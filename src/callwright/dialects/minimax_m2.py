"""MiniMax M2: `<minimax:tool_call>` around `<invoke name="f">` and `<parameter name="k">v</parameter>`.

Values are text, all of it: white space at their ends is theirs. Source: the chat template of MiniMax-M2 (as fixed
by Unsloth, in llama.cpp); M2.1 to M2.7 have the same calls.
"""

from typing import Final, Literal

from callwright.dialects._minimax import END, OUTPUT, OUTPUTS, TOKENS, TOOL, TOOLS, USER, instructions_or_default
from callwright.dialects.base import Dialect, RenderOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, TaggedArguments
from callwright.reading.tagged.calls import ParameterForm, ParameterTags

_OPEN: Final = "<minimax:tool_call>"
_CLOSE: Final = "</minimax:tool_call>"
_CALLS: Final = CallLayout(
    open=f"\n{_OPEN}\n",
    begin='<invoke name="${name}">\n',
    arguments=TaggedArguments(begin='<parameter name="${key}">', end="</parameter>\n"),
    end="</invoke>\n",
    close=_CLOSE,
)
_TAGS: Final = ParameterTags.of(_CALLS)
_HOW_TO: Final = """When making tool calls, use XML format to invoke tools and pass parameters:

<minimax:tool_call>
<invoke name="tool-name-1">
<parameter name="param-key-1">param-value-1</parameter>
<parameter name="param-key-2">param-value-2</parameter>
...
</invoke>
</minimax:tool_call>"""


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, as the template does, `model` leaves it to the model, `off`
    begins it with a closed, empty one.
    """

    thinking: Literal["open", "model", "off"] = "open"


_TURNS: Final = Turns(
    controls=(*TOKENS, _OPEN, _CLOSE, "<think>", "</think>"),
    head="]~!b[«text|tools¦]~b]system\n$text«text tools¦\n\n»$tools[e~[\n»",
    gather=instructions_or_default,
    system="]~b]system\n$text[e~[\n",
    user=USER,
    assistant="]~b]ai\n$written[e~[\n",
    written="«<think>\n$thought:trim\n</think>\n\n»$text$calls",
    outputs=OUTPUTS,
    output=OUTPUT,
    answer="]~b]ai\n«off¦<think>\n\n</think>\n\n»«open¦<think>\n$thought»",
    calls=_CALLS,
    tools=TOOLS + _HOW_TO,
    tool=TOOL,
)


DIALECT = Dialect(
    name="minimax_m2",
    aliases=("minimax",),
    model_families="MiniMax M2 to M2.7",
    model_globs=("minimax-m2*",),
    template_markers=("<minimax:tool_call>",),
    source="chat template of MiniMax-M2 (llama.cpp models/templates/unsloth-MiniMax-M2.jinja)",
    tokenizers=("minimax",),
    stops=(END,),
    options=Options,
    prompt=_TURNS,
    calls=ParameterForm(_CALLS, _TAGS, ends=(END,)),
)
