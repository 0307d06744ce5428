"""Constraints of schemas that are nested as deeply as a request may be: written down, or not sent; never a crash."""

from typing import Any, Final

import pytest

from callwright.constraints.compile import Target, compiled, constraint_key, constraint_of
from callwright.conversation import Conversation, FunctionTool, Message, TextPart
from callwright.dialects.base import dialect_names, get_dialect, read_options
from callwright.errors import RequestError
from callwright.settings.bounds import MAX_DEPTH

TARGETS: Final[tuple[Target, ...]] = ("xgrammar", "llamacpp", "json")


def nested(depth: int, kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        if kind == "items":
            schema = {"type": "array", "items": schema}
        else:
            schema = {"type": "object", "properties": {"in": schema}, "required": ["in"], "additionalProperties": False}
    return {"type": "object", "properties": {"value": schema}, "required": ["value"]}


MOST = MAX_DEPTH - 10  # levels of JSON: of objects each has two, with its properties


@pytest.mark.parametrize(
    ("kind", "depth"), [("items", 60), ("items", MOST), ("properties", 60), ("properties", MOST // 2)]
)
@pytest.mark.parametrize("name", dialect_names())
def test_what_is_too_deep_to_be_written_down_is_not_sent(name: str, depth: int, kind: str) -> None:
    tool = FunctionTool("sort_crates", parameters=nested(depth, kind))
    conversation = Conversation((Message("user", (TextPart("Go."),)),), (tool,), tool_choice="required")
    try:
        prompt = get_dialect(name).render(conversation, read_options(name, {}))
    except RequestError as error:
        if error.code != "nested_too_deeply" or depth < MOST // 3:
            raise
        return
    constraint = constraint_of(name, conversation, prompt)
    assert constraint is not None
    for target in TARGETS:
        found = compiled(constraint, target, constraint_key(constraint))
        assert found is None or found.text
