"""AutoGen's agent, over Chat Completions, whole and streamed."""

from functools import partial
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelInfo
from autogen_ext.models.openai import OpenAIChatCompletionClient
from weather import BASE_URL, PROMPT, get_weather, tell_both

INFO = ModelInfo(vision=False, function_calling=True, json_output=True, family="unknown", structured_output=True)


async def ask(model: str, *, stream: bool) -> Any:
    client: Any = OpenAIChatCompletionClient(
        model=model, base_url=BASE_URL, api_key="any", model_info=INFO, max_retries=0
    )
    agent = AssistantAgent("helper", client, tools=[get_weather], reflect_on_tool_use=True, model_client_stream=stream)
    try:
        return (await agent.run(task=PROMPT)).messages[-1].content
    finally:
        await client.close()


for stream in (False, True):
    how = "streamed" if stream else "whole"
    tell_both(how, partial(ask, stream=stream))
