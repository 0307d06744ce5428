"""What the gateway did in a turn, as output items of the Responses API: each with its begin, its steps and its end."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import pytest
from msgspec import Struct

from callwright.events import ContentDelta, Finished, Usage
from callwright.openai_format.mcp_tools import McpTool
from callwright.openai_format.tool_names import ClientTool, ToolNames
from callwright.wire.responses.request import ResponsesRequest
from callwright.wire.responses.response import ResponseWriter, response_object
from callwright.wire.sealed import unsealed
from callwright.wire.server_events import Compacted, McpApprovalAsked, McpListed, ServerEvent, ToolsSearched
from tests.support.responses_client import checked

TOOL: Final = McpTool("add", None, {"type": "object"})
SHOWN: Final = {"name": "add", "description": None, "input_schema": {"type": "object"}, "annotations": None}
FOUND: Final = {"type": "function", "name": "get_time"}
LISTING: Final = ["mcp_list_tools.in_progress", "mcp_list_tools.completed"]


class Case(Struct, frozen=True):
    """An event, and the items that it becomes; `steps` stand between the begin and the end of each."""

    event: ServerEvent
    items: Sequence[dict[str, Any]]
    steps: Sequence[str] = ()


CASES: Final = {
    "tools of a server": Case(
        McpListed("s", (TOOL,)),
        [{"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "s", "tools": [SHOWN], "error": None}],
        LISTING,
    ),
    "a wish for approval": Case(
        McpApprovalAsked("s__add", '{"a":1}'),
        [
            {
                "id": "mcpr_1",
                "type": "mcp_approval_request",
                "server_label": "s",
                "name": "add",
                "arguments": '{"a":1}',
            }
        ],
    ),
    "a search": Case(
        ToolsSearched("time", ("get_time",), (FOUND,)),
        [
            {
                "id": "tsc_1",
                "type": "tool_search_call",
                "status": "completed",
                "call_id": None,
                "arguments": {"query": "time"},
                "execution": "server",
            },
            {
                "id": "tso_2",
                "type": "tool_search_output",
                "execution": "server",
                "call_id": None,
                "status": "completed",
                "tools": [FOUND],
            },
        ],
    ),
}


def new_writer() -> ResponseWriter:
    names = ToolNames()
    names.add(ClientTool("add", "s", "mcp"))
    request = ResponsesRequest(model="m", input="Hi")
    numbers = itertools.count()
    return ResponseWriter(
        response_object(request, id_="resp_0", created_at=0, tools=()),
        names,
        request,
        new_id=lambda prefix: f"{prefix}_{next(numbers)}",
    )


def written(event: ServerEvent) -> list[Any]:
    """The stream of a turn in which the model says a word, the event comes, and the model says another."""
    writer = new_writer()
    events = writer.begin()
    for one in (ContentDelta("One"), event, ContentDelta("Two"), Finished("stop")):
        writer.write(one)
    events += writer.take()
    events += writer.finish(None, 1)
    for number, sent in enumerate(events):
        sent.sequence_number = number
    return list(msgspec.json.decode(msgspec.json.encode(events)))


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_an_event_is_written_as_whole_items_between_the_models_own(case: Case) -> None:
    events = written(case.event)
    before, *items, behind = checked(events)["output"]
    assert items == list(case.items)
    assert [before["content"][0]["text"], behind["content"][0]["text"]] == ["One", "Two"]
    steps = [event["type"].removeprefix("response.") for event in events if event.get("item_id") == items[0]["id"]]
    assert steps == list(case.steps)


def test_a_summary_travels_sealed_with_the_words_that_lead_in() -> None:
    (_, item, _) = checked(written(Compacted("All is done.")))["output"]
    assert item["type"] == "compaction"
    assert unsealed(item["encrypted_content"]) == (
        "Summary of the conversation so far, which is not shown any more:\n\nAll is done."
    )


ENDS: dict[str, Callable[[ResponseWriter], object]] = {
    "completed": lambda writer: writer.finish(Usage(1, 2), 1),
    "incomplete": lambda writer: writer.finish(None, 1),
    "failed": lambda writer: writer.fail("server_error", "It failed."),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_heartbeat_never_shows_the_end_of_a_response(end: str) -> None:
    """The end is stored before it is sent."""
    writer = new_writer()
    begun = writer.begin()[1]
    for event in (ContentDelta("One"), Finished("length" if end == "incomplete" else "stop")):
        writer.write(event)
    ENDS[end](writer)
    assert writer.response.status == end
    assert msgspec.to_builtins(writer.heartbeat()) == msgspec.to_builtins(begun)
