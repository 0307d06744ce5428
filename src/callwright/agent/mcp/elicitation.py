"""Elicitation: an MCP server's questions to a person during a call, and their answers."""

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from callwright.agent.results import cut_text
from callwright.agent.threads import in_thread
from callwright.schema import validate
from callwright.schema.size import schema_fault

log = logging.getLogger("callwright.mcp")

_MAX_MESSAGE: Final = 4_000


class Question(Struct, frozen=True):
    """A question of a `server` to a person. `message` is its text, which is untrusted.

    With a `schema` it asks for values: a flat object. With a `url` the person should visit it; never fetch it unasked.
    """

    server: str
    message: str
    schema: Mapping[str, Any] | None = None
    url: str | None = None


# Answers a question: the values by name (True for a visited URL); None or False if the person declines. It may be
# async; it is called in a thread.
Elicit: TypeAlias = Callable[[Question], Any]


async def answer_of(elicit: Elicit, server: str, params: Any) -> Any:
    """The `ElicitResult` for a server's question. Any error here is logged, and cancels the question."""
    from mcp import types

    schema = getattr(params, "requested_schema", None)
    if schema is not None and schema_fault(schema):
        log.warning("MCP server %s asks with a schema that is too large: not asked", server)
        return types.ElicitResult(action="cancel")
    message = cut_text(str(params.message), _MAX_MESSAGE)
    question = Question(server, message, schema, getattr(params, "url", None))
    try:
        given = await in_thread(lambda: elicit(question), "callwright elicitation")
        given = await given if inspect.isawaitable(given) else given
    except Exception as error:
        log.warning("the answer to MCP server %s failed: %s", server, type(error).__name__)
        return types.ElicitResult(action="cancel")
    if given is None or given is False:
        return types.ElicitResult(action="decline")
    if question.url is not None:
        return types.ElicitResult(action="accept")
    faults = validate.validator_of(schema or {"type": "object"}).faults(given)
    if faults:
        log.warning("the answer to MCP server %s does not fit at %s: cancelled", server, faults[0].path)
        return types.ElicitResult(action="cancel")
    return types.ElicitResult(action="accept", content=dict(given))
