"""The task of the libraries: they ask for the weather, with a tool whose answer has a word that nobody can guess.

python with_NAME.py BASE_URL MODEL WORD PROMPT
"""

import asyncio
import inspect
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["BASE_URL", "MODEL", "PROMPT", "SCHEMA", "TURNS", "get_weather", "tell", "tell_both"]

BASE_URL, MODEL, WORD, PROMPT = sys.argv[1:]
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TURNS = 3  # then it should have answered
_UNKNOWN = "no-such-model"


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"18 degrees in {city}, {WORD}"


def tell(how: str, ask: Callable[[], object]) -> None:
    """Print an answer, which must hold what the tool has said."""
    answer = str(ask())
    if WORD not in answer:
        sys.exit(f"{how}: the answer lacks what the tool said: {answer}")
    print(f"{how}: {answer}")


def tell_both(how: str, ask: Callable[[str], Any]) -> None:
    """Print what the model answers, and the error of one that is not there, which must name it as the gateway does."""
    tell(how, lambda: _answer(ask, MODEL))
    try:
        answer = _answer(ask, _UNKNOWN)
    except Exception as error:
        told = f"{error} {error.__cause__}"
        if _UNKNOWN not in told:
            sys.exit(f"{how}: the error does not name the model: {told}")
    else:
        sys.exit(f"{how}: a model that is not there answered: {answer}")


def _answer(ask: Callable[[str], Any], model: str) -> Any:
    answer = ask(model)
    return asyncio.run(answer) if inspect.iscoroutine(answer) else answer
