"""LongCat: `<longcat_tool_call>` around `{"name": …, "arguments": {…}}`, a block for each call.

Source: the format as vLLM's parser and tests state it. Turns are written plainly, as `USER:` and `ASSISTANT:`; of the
template only the markers are known, so the tools are told in words.
"""

from collections.abc import Sequence
from typing import Final

from callwright.conversation import Call
from callwright.dialects.base import Dialect
from callwright.dialects.prompts.template import Frame, ThinkingOptions, call_object
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import PromptBuilder

__all__ = ["DIALECT"]


_OPEN: Final = "<longcat_tool_call>"
_CLOSE: Final = "</longcat_tool_call>"
_END: Final = "</longcat_s>"
_THINK: Final = ("<longcat_think>", "</longcat_think>")
_MARKS: Final = CallMarks(
    opens=(_OPEN,), closes=(_CLOSE,), special=False, thoughts=(_THINK, ("<think>", "</think>")), ends=(_END,)
)


def _calls(out: PromptBuilder, calls: Sequence[Call], _: int) -> None:
    for count, call in enumerate(calls):
        out.text("\n" if count else "").control(_OPEN).text("\n")
        call_object(out, call)
        out.text("\n").control(_CLOSE)


_FRAME: Final = Frame(
    controls=(_OPEN, _CLOSE, _END, *_THINK),
    system=("SYSTEM:", "\n"),
    user=("USER:", "\n"),
    assistant=("ASSISTANT:", _END),
    tool=("TOOL:", "\n"),
    thought=(f"{_THINK[0]}\n", f"\n{_THINK[1]}\n"),
    gap="\n",
    calls=_calls,
    each=True,
)


DIALECT = Dialect(
    name="longcat",
    aliases=("longcat_flash",),
    model_families="LongCat-Flash",
    model_globs=("longcat*",),
    template_markers=("<longcat_tool_call>",),
    source="vLLM 0.33.0: parser and tests of longcat",
    stops=("</longcat_s>",),
    options=ThinkingOptions,
    prompt=_FRAME,
    calls=_MARKS,
)
