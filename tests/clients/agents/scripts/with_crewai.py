"""CrewAI's agent, over Chat Completions, whole and streamed."""

from functools import partial
from typing import Any

from crewai import LLM, Agent
from crewai.tools import tool
from weather import BASE_URL, PROMPT, get_weather, tell_both

WEATHER: Any = tool("get_weather")(get_weather)


def ask(model: str, *, stream: bool) -> Any:
    llm = LLM(model=model, provider="openai", base_url=BASE_URL, api_key="any", stream=stream, max_retries=0)
    agent = Agent(role="Helper", goal="Answer", backstory="None", tools=[WEATHER], llm=llm)
    return agent.kickoff(PROMPT)


for stream in (False, True):
    how = "streamed" if stream else "whole"
    tell_both(how, partial(ask, stream=stream))
