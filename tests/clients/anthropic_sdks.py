"""Anthropic's packages for Python and JavaScript, told the same things: what comes is the API's own objects."""

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
from msgspec import Struct

from tests.clients.node import node_of

__all__ = ["NAMES", "Sdk", "SdkError", "opened"]

NAMES: Final = ("python", "javascript")
_SCRIPT: Final = Path(__file__).parent / "anthropic_npm.mjs"


class SdkError(Exception):
    """The package's own error: its class, and what it holds of the API's."""

    def __init__(self, kind: str, status: int | None, type_: str | None, message: str) -> None:
        super().__init__(f"{kind}, {status}, {type_}: {message}")
        self.kind = kind
        self.status = status
        self.type = type_
        self.message = message


class Sdk(Protocol):
    """One of the packages."""

    def do(self, what: str, request: Mapping[str, Any], *, stream: bool = False) -> Any:
        """Ask, and answer what came, as plain objects; raises `SdkError`. `what` is

        - `ask`: a message,
        - `parse`: an answer by the schema of a sight, which has a place and a height,
        - `run_tools`: a loop with the tool `get_weather`: the cities that it was asked for, and the last message,
        - `count`: tokens; `models`: all of them; `model`: one.
        """

    def close(self) -> None: ...


def opened(name: str, url: str, key: str = "any") -> Sdk:
    """A package at a gateway. Skips the test where it is not installed."""
    return PythonSdk(url, key) if name == "python" else JavaScriptSdk(url, key)


class PythonSdk:
    """The package `anthropic`."""

    def __init__(self, url: str, key: str) -> None:
        self._anthropic: Any = pytest.importorskip("anthropic", reason="the anthropic package is not installed")
        self._client = self._anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
        self._does: Mapping[str, Callable[..., Any]] = {
            "ask": self._ask,
            "parse": self._parse,
            "run_tools": self._run_tools,
            "count": lambda request, _: self._client.messages.count_tokens(**request).input_tokens,
            "models": lambda request, _: [model.to_dict(mode="json") for model in self._client.models.list()],
            "model": lambda request, _: self._client.models.retrieve(request["model"]).to_dict(mode="json"),
        }

    def do(self, what: str, request: Mapping[str, Any], *, stream: bool = False) -> Any:
        try:
            return self._does[what](request, stream)
        except self._anthropic.APIStatusError as error:
            raise SdkError(type(error).__name__, error.status_code, error.type, error.message) from error
        except self._anthropic.APIError as error:
            raise SdkError(type(error).__name__, None, None, error.message) from error

    def close(self) -> None:
        self._client.close()

    def _ask(self, request: Mapping[str, Any], stream: bool) -> Any:
        if not stream:
            return self._client.messages.create(**request).to_dict(mode="json")
        with self._client.messages.stream(**request) as events:
            return events.get_final_message().to_dict(mode="json")

    def _parse(self, request: Mapping[str, Any], stream: bool) -> Any:
        pydantic = pytest.importorskip("pydantic")
        sight = pydantic.create_model("Sight", place=(str, ...), height=(int, ...))
        if not stream:
            made = self._client.messages.parse(**request, output_format=sight)
        else:
            with self._client.messages.stream(**request, output_format=sight) as events:
                made = events.get_final_message()
        return made.parsed_output.model_dump()

    def _run_tools(self, request: Mapping[str, Any], stream: bool) -> Any:
        cities: list[str] = []

        @self._anthropic.beta_tool  # type: ignore[untyped-decorator]
        def get_weather(city: str) -> str:
            """The weather in a city."""
            cities.append(city)
            return f"18 °C in {city}"

        runner = self._client.beta.messages.tool_runner(**request, tools=[get_weather], stream=stream)
        message = [turn.get_final_message() for turn in runner][-1] if stream else runner.until_done()
        return {"cities": cities, "message": message.to_dict(mode="json")}


class _Answer(Struct):
    made: Any = None
    failed: dict[str, Any] | None = None


class JavaScriptSdk:
    """The package `@anthropic-ai/sdk`, in a process of its own."""

    def __init__(self, url: str, key: str) -> None:
        command = [node_of("@anthropic-ai/sdk"), str(_SCRIPT), url, key]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do(self, what: str, request: Mapping[str, Any], *, stream: bool = False) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"what": what, "request": request, "stream": stream}) + "\n")
        self._process.stdin.flush()
        answer = _Answer(**json.loads(self._process.stdout.readline()))
        if answer.failed is not None:
            raise SdkError(*(answer.failed[key] for key in ("kind", "status", "type", "message")))
        return answer.made

    def close(self) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
