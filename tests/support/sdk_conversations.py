"""A talk with a client library that is the same over both APIs."""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

import pytest

QUESTION = "What is the weather in Paris?"
RESULT = "18 °C, sunny"


def talk_with_pydantic_ai(
    base_url: str,
    name: str,
    api: Literal["OpenAIChatModel", "OpenAIResponsesModel"],
    *,
    stream: bool,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Ask for the weather: one call, one answer."""
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models import openai as models
    from pydantic_ai.providers.openai import OpenAIProvider

    asked: list[str] = []

    def get_weather(city: str) -> str:
        """The weather in a city."""
        asked.append(city)
        return RESULT

    async def talk() -> None:
        async with AsyncOpenAI(base_url=f"{base_url}/v1", api_key="any", max_retries=0) as client:
            model = getattr(models, api)(name, provider=OpenAIProvider(openai_client=client))
            agent: Any = Agent(model, tools=[get_weather], model_settings=settings)
            if stream:
                async with agent.run_stream(QUESTION) as run:
                    answer, usage = await run.get_output(), run.usage
            else:
                done = await agent.run(QUESTION)
                answer, usage = done.output, done.usage
        assert asked == ["Paris"]
        assert "18 °C" in answer
        assert usage.requests == 2
        assert usage.output_tokens > 0

    asyncio.run(talk())
