"""PLaMo 3: a request in `<|plamo:…|>` tokens that names the tool, then its arguments after `json<|plamo:msg|>`.

Source: the format as vLLM's parser and tests state it. Its template was not seen: here turns are between
`<|plamo:begin_ROLE:plamo|>` and `<|plamo:tag|>`, and the tools are described in words.
"""

import re
from typing import Final

from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout
from callwright.reading.json.marked import CallMarks


def _token(name: str) -> str:
    return f"<|plamo:{name}:plamo|>"


_NAME: Final = (_token("begin_tool_name"), _token("end_tool_name"))
_ARGUMENTS: Final = (_token("begin_tool_arguments"), _token("end_tool_arguments"))
_AS_JSON: Final = ("<|plamo:constrain|>", "<|plamo:msg|>")
_REQUEST: Final = (_token("begin_tool_request"), _token("end_tool_request"))
_REQUESTS: Final = (_token("begin_tool_requests"), _token("end_tool_requests"))
_THOUGHT: Final = (_token("begin_think"), _token("end_think"))
_CALLS: Final = CallLayout(
    open=_REQUESTS[0],
    begin=f"{_REQUEST[0]}{_NAME[0]}${{name}}{_NAME[1]}{_ARGUMENTS[0]}{_AS_JSON[0]}json{_AS_JSON[1]}",
    end=f"{_ARGUMENTS[1]}{_REQUEST[1]}",
    close=_REQUESTS[1],
)
_MARKS: Final = CallMarks(
    layout=_CALLS,
    opens=(_NAME[0],),
    closes=(_ARGUMENTS[1],),
    around=(*_REQUEST, *_REQUESTS),
    header=re.compile(
        rf"([^<{{]*?){re.escape(_NAME[1])}\s*(?:{re.escape(_ARGUMENTS[0])}\s*)?"
        rf"(?:{re.escape(_AS_JSON[0])}\s*json\s*)?(?:{re.escape(_AS_JSON[1])}\s*)?"
    ),
    thoughts=(_THOUGHT,),
    ends=("<|plamo:tag|>",),
)


_ROLES: Final = tuple(_token(f"begin_{role}") for role in ("system", "user", "assistant", "tool"))
_TURNS: Final = Turns(
    controls=(*_ROLES, "<|plamo:tag|>", *_NAME, *_ARGUMENTS, *_AS_JSON, *_REQUEST, *_REQUESTS, *_THOUGHT),
    head="«text|tools¦<|plamo:begin_system:plamo|>$text«text tools¦\n\n»$tools<|plamo:tag|>»",
    system="<|plamo:begin_system:plamo|>$text<|plamo:tag|>",
    user="<|plamo:begin_user:plamo|>$text<|plamo:tag|>",
    assistant="<|plamo:begin_assistant:plamo|>$written<|plamo:tag|>",
    written="«<|plamo:begin_think:plamo|>$thought:trim<|plamo:end_think:plamo|>»$text$calls",
    outputs="$each",
    output="<|plamo:begin_tool:plamo|>$text<|plamo:tag|>",
    answer=(
        "<|plamo:begin_assistant:plamo|>«off¦<|plamo:begin_think:plamo|><|plamo:end_think:plamo|>»"
        "«open¦<|plamo:begin_think:plamo|>$thought»"
    ),
    calls=_CALLS,
)


DIALECT = Dialect(
    name="plamo3",
    aliases=("plamo",),
    model_families="PLaMo 3",
    model_globs=("plamo-3",),
    template_markers=("<|plamo:begin_tool_request",),
    source="vLLM 0.33.0: parser and tests of plamo3",
    tokenizers=("plamo3",),
    stops=("<|plamo:tag|>",),
    options=ThinkingOptions,
    prompt=_TURNS,
    calls=_MARKS,
)
