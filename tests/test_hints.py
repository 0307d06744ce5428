"""What users know about the words of their models: names that mean the same, and whose arguments a bare object is."""

from typing import Any

import pytest

from tests.asking import ask
from tests.conftest import Served
from tests.outputs import QUESTION
from tests.servers import ModelServer, call_deltas, chat, said
from toolwright.gateway.config import InferenceConfig, ModelConfig


def tool(name: str, *required: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in required}, "required": list(required)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


STOCK = tool("count_stock", "warehouse", "article")
OPEN, CLOSE = tool("open_valve", "valve"), tool("close_valve", "valve")


def asked(gateway: str, way: str, *tools: dict[str, Any]) -> list[tuple[str, Any]]:
    return ask(gateway, {"model": way, "messages": [QUESTION], "tools": list(tools)}, stream=False).calls


@pytest.mark.parametrize("known", [True, False], ids=["with the group", "without"])
def test_a_group_of_names_renames_a_parameter(serve: Served, model: ModelServer, known: bool) -> None:
    groups = [["depot", "warehouse"]] if known else []
    gateway = serve(ModelConfig(name="m", upstream=model.url, model="m", aliases=groups, retries=0))
    model.plays(chat(*call_deltas("count_stock", '{"depot": "north", "article": "rope"}'), finish="tool_calls"))
    ((name, arguments),) = asked(gateway, "m", STOCK)
    assert name == "count_stock"
    assert arguments == {"warehouse" if known else "depot": "north", "article": "rope"}


def test_a_name_that_the_tool_declares_is_never_taken_for_another(serve: Served, model: ModelServer) -> None:
    gateway = serve(ModelConfig(name="m", upstream=model.url, model="m", aliases=[["depot", "warehouse"]], retries=0))
    model.plays(chat(*call_deltas("move", '{"depot": "a", "warehouse": "b"}'), finish="tool_calls"))
    assert asked(gateway, "m", tool("move", "depot", "warehouse")) == [("move", {"depot": "a", "warehouse": "b"})]


@pytest.mark.parametrize("known", [True, False], ids=["with the rule", "without"])
def test_a_rule_settles_whose_arguments_an_object_is(serve: Served, model: ModelServer, known: bool) -> None:
    rules = [InferenceConfig(tool="close_valve", keys=["valve"])] if known else []
    gateway = serve(
        ModelConfig(name="m", upstream=model.url, model="m", mode="prompt", dialect="json", infer=rules, retries=0)
    )
    model.plays(said('{"valve": "B7"}'))
    assert asked(gateway, "m", OPEN, CLOSE) == ([("close_valve", {"valve": "B7"})] if known else [])


def test_a_rule_for_a_tool_that_does_not_take_them_counts_for_nothing(serve: Served, model: ModelServer) -> None:
    rules = [InferenceConfig(tool="count_stock", keys=["valve"])]
    gateway = serve(
        ModelConfig(name="m", upstream=model.url, model="m", mode="prompt", dialect="json", infer=rules, retries=0)
    )
    model.plays(said('{"valve": "B7"}'))
    assert asked(gateway, "m", OPEN, CLOSE, STOCK) == []
