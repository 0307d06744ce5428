"""LlamaIndex's agent, over Chat Completions, whole and streamed."""

from functools import partial
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from weather import BASE_URL, PROMPT, get_weather, tell_both


async def ask(model: str, *, stream: bool) -> Any:
    llm = OpenAILike(
        model=model,
        api_base=BASE_URL,
        api_key="any",
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
    )
    return await FunctionAgent(tools=[get_weather], llm=llm, streaming=stream).run(PROMPT)


for stream in (False, True):
    how = "streamed" if stream else "whole"
    tell_both(how, partial(ask, stream=stream))
