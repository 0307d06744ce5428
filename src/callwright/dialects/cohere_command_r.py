"""Command R and R+: `Action:` and a list of `{"tool_name": …, "parameters": {…}}` in a json fence.

Source: the tool-use template of c4ai-command-r-plus: the tools are JSON in the system turn. A call of the tool
`directly-answer` means that no tool is called; it is left out.
"""

import re
from functools import partial
from typing import Final

from callwright.dialects._cohere import CITATIONS, TURNS, CohereCalls
from callwright.dialects.base import Dialect, ReadBy
from callwright.dialects.prompts.turns import Turns
from callwright.events import Markup
from callwright.layout.calls import CallLayout, in_json
from callwright.reading.json.marked import CallMarks
from callwright.streaming.reader import Parse

_OPEN: Final = "Action:"
_CALLS: Final = CallLayout(
    open=f"{_OPEN} ```json\n[", begin=in_json("tool_name", "parameters"), end="}", between=", ", close="]\n```"
)
_MARKS: Final = CallMarks.of(_CALLS, around=CITATIONS, special=False, ends=("<|END_OF_TURN_TOKEN|>",))
_MAX_NO_CALL: Final = 200
_NO_CALL = re.compile(r'\[\s*\{\s*"tool_name"\s*:\s*"directly[-_]answer"\s*,\s*"parameters"\s*:\s*\{\s*\}\s*\}\s*\]')
_MAY_BE_NO_CALL = re.compile(r'\[[\s\w{}":,-]*\Z')


_SHOW_TOOLS: Final = """## Available Tools
Here is a list of tools that you have available to you, each as JSON:
$each

Write 'Action:' followed by a json-formatted list of actions that you want to perform in order to produce a good \
response to the user's last input. You can use any of the supplied tools any number of times, but you should aim to \
execute the minimum number of necessary actions for the input. The list of actions you want to call should be \
formatted as a list of json objects, for example:
```json
[
    {
        "tool_name": title of the tool in the specification,
        "parameters": a dict of parameters to input into the tool as they are defined in the specs, or {} if it takes \
no parameters
    }
]
```"""
_TURNS: Final = Turns(
    controls=TURNS,
    head=(
        "<BOS_TOKEN>«text|tools¦<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>$text«text tools¦\n\n»"
        "$tools<|END_OF_TURN_TOKEN|>»"
    ),
    system="<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>$text<|END_OF_TURN_TOKEN|>",
    user="<|START_OF_TURN_TOKEN|><|USER_TOKEN|>$text<|END_OF_TURN_TOKEN|>",
    assistant="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>$written<|END_OF_TURN_TOKEN|>",
    written="«<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n»$calls",
    outputs="<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|><results>$each</results><|END_OF_TURN_TOKEN|>",
    output="\nDocument: $number\n$text\n",
    answer="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    calls=_CALLS,
    tools=_SHOW_TOOLS,
    tool="\n$function",
)


class _Calls(CohereCalls):
    """Lists of actions; `directly-answer` is no call."""

    def _block(self, opening: str) -> Parse[None]:
        source = self.text.source
        while True:
            ahead = source.ahead(_MAX_NO_CALL)
            if found := _NO_CALL.match(ahead):
                self.text.emit(Markup(opening + source.take(source.at + found.end())))
                self.text.call_begins()
                yield from self._close()
                return
            if not source.more(_MAX_NO_CALL) or not _MAY_BE_NO_CALL.match(ahead):
                break
            yield
        yield from super()._block(opening)


DIALECT = Dialect(
    name="cohere_command_r",
    aliases=("command_r", "command_r_plus"),
    model_families="Command R, Command R+",
    model_globs=("command-r",),
    template_markers=("directly-answer", "directly_answer"),
    source="tool-use template of c4ai-command-r-plus",
    tokenizers=("cohere",),
    stops=("<|END_OF_TURN_TOKEN|>",),
    stop_token_ids=(255001,),
    prompt=_TURNS,
    calls=ReadBy(_CALLS, partial(_Calls, form=_MARKS)),
)
