"""Semantic Kernel, over Chat Completions, whole and streamed."""

from functools import partial
from typing import Any

from openai import AsyncOpenAI
from semantic_kernel import Kernel
from semantic_kernel.connectors.ai import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import kernel_function
from weather import BASE_URL, PROMPT, get_weather, tell_both


async def ask(model: str, *, stream: bool) -> Any:
    kernel = Kernel()
    kernel.add_function("places", kernel_function(get_weather, name="get_weather"))
    history = ChatHistory()
    history.add_user_message(PROMPT)
    settings = OpenAIChatPromptExecutionSettings(function_choice_behavior=FunctionChoiceBehavior.Auto())
    async with AsyncOpenAI(base_url=BASE_URL, api_key="any", max_retries=0) as client:
        chat: Any = OpenAIChatCompletion(ai_model_id=model, async_client=client)
        if not stream:
            return await chat.get_chat_message_content(history, settings, kernel=kernel)
        answered = chat.get_streaming_chat_message_content(history, settings, kernel=kernel)
        return "".join([str(piece) async for piece in answered])


for stream in (False, True):
    how = "streamed" if stream else "whole"
    tell_both(how, partial(ask, stream=stream))
