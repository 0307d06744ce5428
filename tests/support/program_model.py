"""A model server for the programs of `docs/contributing/agent-programs.md`: it answers every framework by a script.

    python -m tests.support.program_model [--hold]

prints its base URL, and ends with its standard input. What it answers depends on the first words of the user, the tools
that it is offered and what they have said; so a final answer shows that results of tools came through. A history that
no server would take is a 400. `--hold`: of a text that streams the rest goes out when a line is written to its standard
input, so that one can see that the first words came before.
"""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from aiohttp import web

__all__ = ["REQUEST_TOKENS", "answer_to"]

# What each request is said to have used, of both kinds of tokens.
REQUEST_TOKENS: Final = 15
_PROMPT_TOKENS: Final = 10

Calls: TypeAlias = list[tuple[str, dict[str, Any]]]
Message: TypeAlias = Mapping[str, Any]


class _Asked:
    """A request, as the scripts look at it."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.messages: Sequence[Message] = body["messages"]
        self._tools = {one["function"]["name"]: one["function"] for one in body.get("tools") or ()}
        self.said = [_text(one) for one in self.messages if one["role"] == "user"]
        self.outputs = [_text(one) for one in self.messages if one["role"] == "tool"]
        self.is_first = all(one["role"] in ("system", "developer", "user") for one in self.messages)

    def tool(self, *words: str) -> str | None:
        """The tool with one of these words in its name, which frameworks prefix and spell in ways of their own."""
        return next((name for name in self._tools for word in words if word in name), None)

    def call(self, name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """A call; what the tool requires besides is the user's words."""
        parameters = self._tools[name].get("parameters") or {}
        asked = {one: self.said[0] for one in parameters.get("required", ()) if one not in arguments}
        return name, {**arguments, **asked}

    def answer(self, value: Mapping[str, Any]) -> Calls | str:
        """A typed answer, as it is wanted: by a call of a final tool, or as JSON."""
        final = self.tool("final", "Invoice")
        return [(final, dict(value))] if final else json.dumps(value)


def _text(message: Message) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


# --- the scripts, one for each program ---


def _two_tools(asked: _Asked) -> Calls | str:
    if not asked.outputs:
        return [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Paris"})]
    if len(asked.outputs) == 2:
        return [("convert", {"amount": 100, "source": "USD", "target": "EUR"})]
    return "; ".join(asked.outputs)


def _typed_answer(asked: _Asked) -> Calls | str:
    is_corrected = len(asked.said) + len(asked.outputs) > 1  # it was told what is wrong
    lines = [{"article": "lamp", "price": 30.0}, {"article": "bulb", "price": 2.5}]
    return asked.answer({"customer": "Anna", "lines": lines, "total": 32.5 if is_corrected else 35.2})


def _streaming(asked: _Asked) -> Calls | str:
    if not asked.outputs:
        return [("find_orders", {"customer": "Anna"})]
    return f"Anna has two orders: {asked.outputs[0]}. Both come this week."


def _approval(asked: _Asked) -> Calls | str:
    if not asked.outputs:
        return [("delete_file", {"path": "notes.txt"})]
    return "It is gone." if asked.outputs[0] == "deleted notes.txt" else "I left it."


def _team(asked: _Asked) -> Calls | str:
    invoices, legal = asked.tool("look_up"), asked.tool("legal")
    if invoices and legal:
        told = [one for one in asked.outputs if "billing" not in one]  # a hand-over has an output, too
        return " ".join(told) if told else [asked.call(invoices, number=7), asked.call(legal)]
    if billing := asked.tool("billing", "final"):
        return [asked.call(billing)]
    return "It can be disputed for 14 days."


def _mcp_tools(asked: _Asked) -> Calls | str:
    reader = asked.tool("read_note")
    return asked.outputs[0] if asked.outputs or not reader else [(reader, {"title": "Oslo"})]


def _many_calls(asked: _Asked) -> Calls | str:
    if not asked.outputs:
        return [("fetch_page", {"number": number}) for number in range(1, 21)]
    if len(asked.outputs) == 20 and any("once more" in one for one in asked.outputs):
        return [("fetch_page", {"number": 13})]
    got = {one.split(":")[0] for one in asked.outputs if re.match(r"page \d+: ", one)}
    return f"{len(got)} pages, without {sorted(set(range(1, 21)) - {int(one.split()[1]) for one in got})}"


def _long_chat(asked: _Asked) -> Calls | str:
    if asked.said[-1] == "What is my name?":
        names = [found[1] for one in asked.said if (found := re.search(r"My name is (\w+)", one))]
        return f"{names[0]}. You have said {len(asked.said)} things." if names else "I do not know."
    return "I see."


_SCRIPTS: Final[Mapping[str, Callable[[_Asked], Calls | str]]] = {
    "What is the weather": _two_tools,
    "Read this invoice": _typed_answer,
    "Where are the orders": _streaming,
    "Delete": _approval,
    "Can I still dispute": _team,
    "What does my note": _mcp_tools,
    "Fetch": _many_calls,
    "": _long_chat,
}


def answer_to(body: Mapping[str, Any]) -> Calls | str:
    """Calls, or a text. Raises ValueError for a history that no server takes."""
    open_calls: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                raise ValueError(f"no call has the id {message['tool_call_id']!r}")
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            raise ValueError(f"the calls {open_calls} have no output")
        open_calls += [call["id"] for call in message.get("tool_calls") or ()]
    asked = _Asked(body)
    script = next(script for words, script in _SCRIPTS.items() if asked.said[0].startswith(words))
    return script(asked)


# --- as a server ---


def _whole(body: Mapping[str, Any], answer: Calls | str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer if isinstance(answer, str) else None}
    if not isinstance(answer, str):
        message["tool_calls"] = _tool_calls(body, answer)
    choice = {"index": 0, "message": message, "finish_reason": "stop" if isinstance(answer, str) else "tool_calls"}
    return {**_head(body, "chat.completion"), "choices": [choice], "usage": _USAGE}


def _chunks(body: Mapping[str, Any], answer: Calls | str) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if isinstance(answer, str):
        deltas += [{"content": piece} for piece in re.findall(r"\S+\s*", answer)]
    else:
        for index, call in enumerate(_tool_calls(body, answer)):
            arguments = call["function"]["arguments"]
            named = {"name": call["function"]["name"], "arguments": ""}
            deltas.append({"tool_calls": [{**call, "index": index, "function": named}]})
            for piece in re.findall(r".{1,8}", arguments):
                deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    head = _head(body, "chat.completion.chunk")
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    reason = "stop" if isinstance(answer, str) else "tool_calls"
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**head, "choices": [], "usage": _USAGE})
    return chunks


def _tool_calls(body: Mapping[str, Any], answer: Calls) -> list[dict[str, Any]]:
    """Each with an id that no other of the conversation has."""
    before = sum(len(message.get("tool_calls") or ()) for message in body["messages"])
    return [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for number, (name, arguments) in enumerate(answer, before)
    ]


def _head(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": body["model"]}


_USAGE: Final = {
    "prompt_tokens": _PROMPT_TOKENS,
    "completion_tokens": REQUEST_TOKENS - _PROMPT_TOKENS,
    "total_tokens": REQUEST_TOKENS,
}


async def _serve(holds: bool) -> None:
    released = asyncio.Event()

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        try:
            answer = answer_to(body)
        except ValueError as error:
            return web.json_response({"error": {"message": str(error), "type": "invalid_request_error"}}, status=400)
        if not body.get("stream"):
            return web.json_response(_whole(body, answer))
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        chunks = _chunks(body, answer)
        for number, chunk in enumerate(chunks):
            if holds and isinstance(answer, str) and number == len(chunks) // 2:
                await released.wait()
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    app = web.Application(client_max_size=1 << 24)
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        released.set()
    await runner.cleanup()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hold", action="store_true", help="keep the rest of a text back until a line comes")
    asyncio.run(_serve(options.parse_args().hold))
