"""Asks a person the questions of an MCP server during a call, in the terminal: a line for each value.

The texts are untrusted: the server is named, no URL is opened, and nothing is answered without the person.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from callwright.agent.mcp.elicitation import Elicit, Question
from callwright.cli.chat.background import Background
from callwright.cli.chat.screen import Screen, plain
from callwright.schema import validate
from callwright.tolerant_json.codec import NotJsonError, decode

_YES: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
_NO_ANSWER: Final = "[no answer]"


def asking_in(screen: Screen, background: Background) -> Elicit | None:
    """A function that asks the person, in the thread that waits for the run; None without a terminal."""
    if not screen.is_interactive:
        return None
    one_at_a_time = asyncio.Lock()

    async def ask(question: Question) -> Any:
        async with one_at_a_time:
            return await background.ask(lambda: _answer(screen, question))

    return ask


def _answer(screen: Screen, question: Question) -> Any:
    """The values, True for a visit, or None. Raises `KeyboardInterrupt`, which ends the turn."""
    screen.line(f"{plain(question.server)} asks: {plain(question.message)}", bold=True)
    try:
        if question.url is not None:
            screen.line(f"It wants you to go to {plain(question.url)}")
            return _YES.get(screen.ask("Have you done so? [y]es, [n]o: ", fg="yellow").strip().lower(), False)
        return _values(screen, question.schema or {})
    except EOFError:
        screen.line(_NO_ANSWER, fg="yellow")
        return None


def _values(screen: Screen, schema: Mapping[str, Any]) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required = set(schema.get("required") or ())
    screen.line("Ctrl-D: no answer. An empty line leaves a value out, or takes the one in parentheses.", dim=True)
    given: dict[str, Any] = {}
    for name, about in properties.items():
        about = about if isinstance(about, Mapping) else {}
        while True:
            line = screen.ask(f"{_prompt(name, about, is_required=name in required)}: ", fg="yellow").strip()
            if not line and "default" in about:
                given[name] = about["default"]
                break
            if not line and name not in required:
                break
            value = _read(line, about)
            faults = validate.validator_of(about).faults(value)
            if not faults:
                given[name] = value
                break
            screen.line(plain(faults[0].message), fg="red")
    return given


def _prompt(name: str, about: Mapping[str, Any], *, is_required: bool) -> str:
    """The prompt for a property: its title, description, choices and default."""
    words = [plain(str(about.get("title") or name))]
    if about.get("description"):
        words.append(f"- {plain(str(about['description']))}")
    if choices := _choices(about):
        words.append(f"[{', '.join(plain(str(choice)) for choice in choices)}]")
    elif about.get("type") == "boolean":
        words.append("[y/n]")
    if "default" in about:
        words.append(f"({plain(str(about['default']))})")
    elif not is_required:
        words.append("(nothing)")
    return " ".join(words)


def _choices(about: Mapping[str, Any]) -> list[Any]:
    """The valid choices for a value, or for each item of a list."""
    if isinstance(items := about.get("items"), Mapping):
        return _choices(items)
    if isinstance(about.get("enum"), list):
        return list(about["enum"])
    several = about.get("oneOf") or about.get("anyOf") or ()
    return [one["const"] for one in several if isinstance(one, Mapping) and "const" in one]


def _read(line: str, about: Mapping[str, Any]) -> Any:
    """Convert a line to the type of a property; the line itself if it does not fit."""
    match about.get("type"):
        case "boolean":
            return _YES.get(line.lower(), line)
        case "integer" | "number":
            try:
                return decode(line)
            except NotJsonError:
                return line
        case "array":
            return [part.strip() for part in line.split(",")]
        case _:
            return line
