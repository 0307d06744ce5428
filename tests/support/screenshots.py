"""Pictures of the pages for docs: `python -m tests.support.screenshots FOLDER` (scripts/screenshots)."""

import json
import sys
from pathlib import Path
from typing import Any, Final

from callwright.gateway.config.config import Config, ModelConfig
from tests.support.browser import Watched, browser
from tests.support.http_client import CHAT, request
from tests.support.messages_client import MESSAGES
from tests.support.responses_client import RESPONSES
from tests.support.servers import Gateway
from tests.support.waiting import until

_SIZE: Final = {"width": 1180, "height": 720}
_TOOL: Final[dict[str, Any]] = {
    "name": "get_weather",
    "description": "Weather of a city for some days.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
    "strict": True,
}
_FAULTS: Final = {
    "qwen3-32b": ("hermes", "string_numbers:0.4,missing_argument:0.3,single_quotes:0.2"),
    "gpt-oss-120b": ("harmony", "wrong_channel:0.5,string_numbers:0.4"),
    "qwen3-coder": ("qwen3_coder", "missing_close_tag:0.5,odd_name:0.5"),
    "glm-4.6": ("glm45", "camel_case:0.4,error_500:0.15"),
}
_CITIES: Final = ("Oslo", "Bergen", "Tromsø", "Molde", "Bodø", "Narvik", "Ålesund", "Hamar", "Halden")


def main(folder: Path) -> None:
    """Take them all."""
    models = tuple(
        ModelConfig(name=name, upstream="simulated", mode="raw", dialect=dialect, faults=faults)
        for name, (dialect, faults) in _FAULTS.items()
    )
    gateway = Gateway(Config(models=models))
    try:
        rows = _traffic(gateway.url)
        folder.mkdir(parents=True, exist_ok=True)
        with browser() as chromium:
            context = chromium.new_context(viewport=_SIZE, color_scheme="light", timezone_id="UTC", locale="en-GB")
            page = Watched(context.new_page(), gateway.url)
            _take(page, folder, "home", "/", "Last problems")
            _take(page, folder, "requests", "/ui", "Outcome")
            again = next(row for row in reversed(rows) if row["outcome"] == "asked_again")
            _take(page, folder, "turn", f"/ui/turns/{again['id']}", "Output of the model")
            _take(page, folder, "read", "/ui/read", "tool_name_repaired")
            _take(page, folder, "quality", "/ui/quality", "Outcomes by model")
            page.open("/ui/try")
            page.page.get_by_role("button", name="Send", exact=True).click()
            page.page.locator(".round .piece[data-at]").first.wait_for()
            page.page.screenshot(path=folder / "try.png")
            assert not page.wrong, page.wrong
    finally:
        gateway.stop()


def _traffic(url: str) -> list[dict[str, Any]]:
    """Some requests over each API, and their rows."""
    tool = {"type": "function", "function": _TOOL}
    flat = {"type": "function", **_TOOL}
    anthropic = {"name": _TOOL["name"], "description": _TOOL["description"], "input_schema": _TOOL["parameters"]}
    asked = 0
    for number, city in enumerate(_CITIES * 3):
        for model in _FAULTS:
            says = f"What is the weather in {city} for {number % 5 + 2} days?"
            user = [{"role": "user", "content": says}]
            bodies: list[tuple[str, dict[str, Any]]] = [
                (CHAT, {"messages": user, "tools": [tool]}),
                (RESPONSES, {"input": says, "tools": [flat], "store": False}),
                (MESSAGES, {"messages": user, "tools": [anthropic], "max_tokens": 300}),
            ]
            path, body = bodies[(number + asked) % len(bodies)]
            request(url + path, {"model": model, "stream": True, **body})
            asked += 1

    def rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(request(url + "/ui/api/turns", method="GET").text)["rows"]
        return found

    until(lambda: sum(row["over"] for row in rows()) >= asked)
    return rows()


def _take(page: Watched, folder: Path, name: str, path: str, waits_for: str) -> None:
    page.open(path)
    page.page.get_by_text(waits_for).first.wait_for(state="attached")
    page.page.screenshot(path=folder / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
