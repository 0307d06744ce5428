"""The program of the process in which chat templates run. It reads requests from standard input, a JSON value a line,
and answers in the same way; it imports nothing of ours, so that it starts fast.

Templates are untrusted. Jinja's sandbox blocks access to Python; time, memory and the length of texts, which it does
not limit, are limited here: a template that exceeds them ends this process, and the next request begins another.
"""

# Filters, functions and errors of Jinja import the modules marked F401 on first use: too late, as no file can be opened
# then.
import html  # noqa: F401
import json
import pprint  # noqa: F401
import random  # noqa: F401
import signal
import sys
import textwrap  # noqa: F401
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import jinja2.constants
import jinja2.debug  # noqa: F401
from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import SandboxedEnvironment

_MAX_TEXT = 16_777_216


class _Generation(Extension):
    """The block in which templates mark the output of a model: its text is rendered."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return list(parser.parse_statements(("name:endgeneration",), drop_needle=True))


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: object) -> None:
    raise TemplateError(str(message))


def _environment(now: list[datetime]) -> SandboxedEnvironment:
    """Jinja as transformers sets it up for chat templates."""
    environment = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: now[0].strftime(str(form))
    return environment


def _limit(memory: int) -> None:
    """Nothing is opened from now on, no file grows, no process begins, and the memory has an end."""
    try:
        import resource
    except ImportError:  # no Unix: time and length are held all the same
        return
    limits = {"RLIMIT_NOFILE": 3, "RLIMIT_FSIZE": 0, "RLIMIT_NPROC": 0, "RLIMIT_CORE": 0, "RLIMIT_AS": memory}
    for name, most in limits.items():
        if (kind := getattr(resource, name, None)) is not None:
            try:
                resource.setrlimit(kind, (most, most))
            except (OSError, ValueError):
                continue


def _joined(pieces: Iterator[str]) -> str:
    kept: list[str] = []
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > _MAX_TEXT:
            raise TemplateError(f"the prompt has more than {_MAX_TEXT:,} characters")
        kept.append(piece)
    return "".join(kept)


def _answer(request: Mapping[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    if "template" in request:
        state["now"] = [datetime(2026, 1, 1)]  # a day, set by each request
        state["template"] = _environment(state["now"]).from_string(request["template"])
        return {"text": ""}
    state["now"][0] = datetime.fromisoformat(f"{request['today']}T12:00:00")
    return {"text": _joined(state["template"].generate(**request["variables"]))}


def main(memory: int, seconds: int) -> None:
    """Answer until the input ends."""
    _environment([]).from_string("{{ 'a' | tojson }}{% for _ in [1] %}{% endfor %}").render()  # loads the modules
    _limit(memory)
    state: dict[str, Any] = {}
    for line in sys.stdin:
        if hasattr(signal, "alarm"):
            signal.alarm(seconds)  # ends this process, even if the parent no longer waits
        try:
            answer = _answer(json.loads(line), state)
        except MemoryError:
            answer = {"error": "it takes too much memory"}
        except RecursionError:
            answer = {"error": "it is nested too deeply"}
        except Exception as error:  # whatever a template does wrong is its answer
            answer = {"error": f"{type(error).__name__}: {error}"[:2_000], "refused": isinstance(error, TemplateError)}
        if hasattr(signal, "alarm"):
            signal.alarm(0)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
