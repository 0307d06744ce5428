"""Agno, over both of OpenAI's APIs and Anthropic's, whole and streamed."""

from collections.abc import Callable
from functools import partial
from typing import Any

from agno.agent import Agent
from agno.models.anthropic import Claude
from agno.models.openai import OpenAIChat, OpenAIResponses
from weather import BASE_URL, PROMPT, get_weather, tell_both

ANTHROPIC = {"base_url": BASE_URL.removesuffix("/v1"), "max_retries": 0}
MODELS: dict[str, Callable[[str], Any]] = {
    "chat": lambda name: OpenAIChat(id=name, base_url=BASE_URL, api_key="any", max_retries=0),
    "responses": lambda name: OpenAIResponses(id=name, base_url=BASE_URL, api_key="any", max_retries=0),
    "messages": lambda name: Claude(id=name, api_key="any", client_params=ANTHROPIC),
}


def ask(make: Callable[[str], Any], model: str, *, stream: bool) -> Any:
    agent = Agent(model=make(model), tools=[get_weather], telemetry=False)
    parts = agent.run(PROMPT, stream=True) if stream else [agent.run(PROMPT)]
    events = list(parts)
    if failed := [event for event in events if "error" in str(getattr(event, "status", "") or event.event).lower()]:
        raise RuntimeError(failed[0].content)
    return "".join(str(event.content or "") for event in events)


for api, make in MODELS.items():
    for stream in (False, True):
        how = f"{api}, {'streamed' if stream else 'whole'}"
        tell_both(how, partial(ask, make, stream=stream))
