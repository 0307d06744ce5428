"""Output items for steps of the gateway itself, which are complete from the start: no model wrote them."""

from collections.abc import Callable
from typing import TypeAlias, assert_never

from callwright.openai_format.tool_names import ToolNames
from callwright.wire.responses.compaction import Summary, pack
from callwright.wire.responses.output_types import (
    McpApprovalRequest,
    McpListTools,
    OutputItem,
    ResponseCompactionItem,
    ResponseToolSearchCall,
    ResponseToolSearchOutputItem,
)
from callwright.wire.server_events import Compacted, McpApprovalAsked, McpListed, ToolsSearched
from callwright.wire.server_words import summary_words

WholeEvent: TypeAlias = McpListed | McpApprovalAsked | ToolsSearched | Compacted


def server_items(event: WholeEvent, names: ToolNames, new_id: Callable[[str], str]) -> list[OutputItem]:
    """The items for an event, in order. `names` are those of the request's tools, `new_id` makes an id from its
    prefix.
    """
    match event:
        case McpListed(label, tools):
            return [McpListTools(id=new_id("mcpl"), server_label=label, tools=tools)]
        case McpApprovalAsked(name, arguments):
            tool = names.client(name)
            return [
                McpApprovalRequest(id=new_id("mcpr"), server_label=tool.namespace, name=tool.name, arguments=arguments)
            ]
        case ToolsSearched(query, _, tools):
            call = ResponseToolSearchCall(
                id=new_id("tsc"), call_id=None, status="completed", arguments={"query": query}, execution="server"
            )
            return [call, ResponseToolSearchOutputItem(id=new_id("tso"), tools=tools)]
        case Compacted(summary, goes_on):
            content = pack(Summary(summary_words(summary), goes_on))
            return [ResponseCompactionItem(id=new_id("cmp"), encrypted_content=content)]
        case _:
            assert_never(event)
