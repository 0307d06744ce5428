"""Strands Agents, which always asks for streams: over both of OpenAI's APIs, and Anthropic's."""

from collections.abc import Callable
from functools import partial
from typing import Any

from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel
from weather import BASE_URL, PROMPT, get_weather, tell_both

OPENAI = {"base_url": BASE_URL, "api_key": "any", "max_retries": 0}
ANTHROPIC = {**OPENAI, "base_url": BASE_URL.removesuffix("/v1")}
MODELS: dict[str, Callable[[str], Any]] = {
    "chat": lambda name: OpenAIModel(client_args=OPENAI, model_id=name),
    "responses": lambda name: OpenAIResponsesModel(client_args=OPENAI, model_id=name),
    "messages": lambda name: AnthropicModel(client_args=ANTHROPIC, model_id=name, max_tokens=500),
}


def ask(make: Callable[[str], Any], model: str) -> Any:
    return Agent(model=make(model), tools=[tool(get_weather)], callback_handler=None)(PROMPT)


for how, make in MODELS.items():
    tell_both(how, partial(ask, make))
