"""Google's Agent Development Kit, which asks over LiteLLM: Chat Completions, whole and streamed."""

from functools import partial
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types
from weather import BASE_URL, PROMPT, get_weather, tell_both


async def ask(model: str, *, stream: bool) -> Any:
    llm = LiteLlm(model=f"openai/{model}", api_base=BASE_URL, api_key="any", num_retries=0)
    runner = InMemoryRunner(LlmAgent(name="helper", model=llm, tools=[get_weather]), app_name="weather")
    session = await runner.session_service.create_session(app_name="weather", user_id="one")
    asked = types.Content(role="user", parts=[types.Part(text=PROMPT)])
    mode = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
    said: Any = None
    async for event in runner.run_async(user_id="one", session_id=session.id, new_message=asked, run_config=mode):
        if event.error_message:
            raise RuntimeError(event.error_message)
        if event.is_final_response() and event.content and event.content.parts:
            said = "".join(part.text or "" for part in event.content.parts if not part.thought)
    return said


for stream in (False, True):
    how = "streamed" if stream else "whole"
    tell_both(how, partial(ask, stream=stream))
