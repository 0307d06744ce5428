"""Haystack's agent, over both of OpenAI's APIs, whole and streamed."""

from functools import partial
from typing import Any

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from haystack.utils import Secret
from weather import BASE_URL, PROMPT, SCHEMA, get_weather, tell_both

WEATHER = Tool("get_weather", get_weather.__doc__ or "", SCHEMA, get_weather)


def ask(over: Any, model: str, *, stream: bool) -> Any:
    generator = over(model=model, api_key=Secret.from_token("any"), api_base_url=BASE_URL, max_retries=0)
    agent = Agent(chat_generator=generator, tools=[WEATHER])
    pieces: list[Any] = []
    done = agent.run([ChatMessage.from_user(PROMPT)], streaming_callback=pieces.append if stream else None)
    assert bool(pieces) == stream
    return done["last_message"].text


for kind in (OpenAIChatGenerator, OpenAIResponsesChatGenerator):
    for stream in (False, True):
        how = f"{kind.__name__}, {'streamed' if stream else 'whole'}"
        tell_both(how, partial(ask, kind, stream=stream))
