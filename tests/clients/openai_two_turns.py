"""A conversation of two turns with the official openai package, of any major version: a call, its result, the answer.

    python openai_two_turns.py BASE_URL MODEL [MODEL ...]

Each model is asked for it whole, streamed, and by the package's stream helper, which is the strictest reader of the
three. Exits with 1 and says what differs when anything does.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import openai

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather in a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
                "additionalProperties": False,
            },
            "strict": True,
        },
    }
]
QUESTION = {"role": "user", "content": "What is the weather in Paris?"}
RESULT = "18 °C, sunny"
Ask = Callable[[Any, str, list[Any]], tuple[dict[str, Any], str]]


def whole(client: Any, model: str, messages: list[Any]) -> tuple[dict[str, Any], str]:
    """The assistant message and the finish reason of an answer that is not streamed."""
    answer = client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
    (choice,) = answer.choices
    expect("the token counts", answer.usage.total_tokens > 0, True)
    expect("the object", answer.object, "chat.completion")
    return choice.message.model_dump(exclude_none=True), choice.finish_reason


def streamed(client: Any, model: str, messages: list[Any]) -> tuple[dict[str, Any], str]:
    """The same, put together from the chunks of a stream by hand."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: dict[int, dict[str, Any]] = {}
    reason = ""
    counted = 0
    options = {"include_usage": True}
    for chunk in client.chat.completions.create(
        model=model, messages=messages, tools=TOOLS, stream=True, stream_options=options
    ):
        counted += chunk.usage.total_tokens if chunk.usage else 0
        for choice in chunk.choices:
            message["content"] += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():
                call = calls.setdefault(piece.index, {"type": "function", "function": {"name": "", "arguments": ""}})
                call["id"] = call.get("id") or piece.id
                call["function"]["name"] += piece.function.name or ""
                call["function"]["arguments"] += piece.function.arguments or ""
            reason = choice.finish_reason or reason
    expect("the token counts", counted > 0, True)
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return message, reason


def helped(client: Any, model: str, messages: list[Any]) -> tuple[dict[str, Any], str]:
    """The same, put together by the package."""
    with client.chat.completions.stream(model=model, messages=messages, tools=TOOLS) as stream:
        kinds = {event.type for event in stream}
        (choice,) = stream.get_final_completion().choices
    calls = choice.message.tool_calls or []
    expect("the parsed arguments", [call.function.parsed_arguments for call in calls], [{"city": "Paris"}] * len(calls))
    expect("the end of the call among the events", "tool_calls.function.arguments.done" in kinds, bool(calls))
    message = {"role": "assistant", "content": choice.message.content}
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in calls
        ]
    return message, choice.finish_reason


def two_turns(client: Any, model: str, ask: Ask) -> None:
    """Ask, run the call, tell its result, and check what comes."""
    message, reason = ask(client, model, [QUESTION])
    expect("the finish reason of the first turn", reason, "tool_calls")
    expect("the number of calls", len(message.get("tool_calls", ())), 1)
    (call,) = message["tool_calls"]
    expect("the tool", call["function"]["name"], "get_weather")
    expect("the arguments", json.loads(call["function"]["arguments"]), {"city": "Paris"})
    result = {"role": "tool", "tool_call_id": call["id"], "content": RESULT}
    message, reason = ask(client, model, [QUESTION, message, result])
    expect("the finish reason of the second turn", reason, "stop")
    expect("calls in the second turn", message.get("tool_calls", []), [])
    expect("the result in the answer", "18 °C" in message["content"], True)


def expect(what: str, got: object, wanted: object) -> None:
    """Raise when the two differ."""
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, expected {wanted!r}")


def main(base_url: str, *models: str) -> int:
    """Run all conversations; the number of those that went wrong."""
    failed = 0
    with openai.OpenAI(base_url=base_url, api_key="any", max_retries=0) as client:
        for model in models:
            for ask in (whole, streamed, helped):
                try:
                    two_turns(client, model, ask)
                except (AssertionError, openai.OpenAIError) as error:
                    failed += 1
                    print(f"openai {openai.__version__}, {model}, {ask.__name__}: {error!r}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(1 if main(*sys.argv[1:]) else 0)
