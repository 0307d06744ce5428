"""Templates of strangers: none gets at this process, its machine or its time."""

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from callwright.chat_template import renderer
from callwright.chat_template.dialect import template_dialect
from callwright.chat_template.renderer import MAX_TEMPLATE, TemplateFailureError, TemplateRenderer
from callwright.errors import ConfigError
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.processes

REFUSED = {
    "attributes of Python": "{{ ''.__class__.__mro__ }}",
    "globals": "{{ cycler.__init__.__globals__ }}",
    "a file": "{% include '/etc/hostname' %}",
    "an import": "{% import 'os' as os %}{{ os }}",
    "a long range": "{{ range(10000000) | list }}",
    "a long text": "{{ 'x' * 20000000 }}",
    "much memory": "{{ ('x' * 100000000) * 100 }}",
    "deep nesting": "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
    "nothing that there is": "{{ nobody.knows.this }}",
    "its own refusal": "{{ raise_exception('not like this') }}",
    "a division": "{{ 1 / 0 }}",
    "bad syntax": "{% for %}",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_template_may_not_is_told(name: str) -> None:
    asked = TemplateRenderer(REFUSED[name])
    with pytest.raises(TemplateFailureError) as caught:
        asked.render({}, "2026-01-01")
    assert str(caught.value)
    asked.close()


@pytest.mark.parametrize(
    "template",
    [
        "{% macro m() %}{% endmacro %}{{ m.__globals__ }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ self._TemplateReference__context.environment }}",
    ],
)
def test_what_a_template_does_not_see_is_empty_or_refused(template: str) -> None:
    asked = TemplateRenderer(template)
    text = ""
    with suppress(TemplateFailureError):
        text = asked.render({}, "2026-01-01")
    assert text == ""
    asked.close()


def test_a_template_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderer, "_SECONDS", 1)
    asked = TemplateRenderer("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")
    with pytest.raises(TemplateFailureError, match="it takes more than 1 s"):
        asked.render({}, "2026-01-01")
    with pytest.raises(TemplateFailureError, match="it takes more than 1 s"):  # in another process
        asked.render({}, "2026-01-01")


def test_it_goes_on_behind_one_that_was_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderer, "_SECONDS", 1)
    asked = TemplateRenderer("{% for a in range(n) %}{% for b in range(n) %}{% endfor %}{% endfor %}done")
    with pytest.raises(TemplateFailureError):
        asked.render({"n": 99_999}, "2026-01-01")
    assert asked.render({"n": 2}, "2026-01-01") == "done"
    asked.close()


def test_its_process_sees_no_environment_and_opens_nothing(tmp_path: Path) -> None:
    program = Path(renderer.__file__).with_name("sandbox.py")
    told = tmp_path / "told.py"
    told.write_text(
        "import sys, os, runpy\n"
        f"sandbox = runpy.run_path({str(program)!r}, run_name='sandbox')\n"
        "sandbox['_limit'](1 << 30)\n"
        "for what in (lambda: open('/etc/hostname'), os.fork, lambda: __import__('socket').socket()):\n"
        "    try:\n"
        "        what()\n"
        "    except OSError:\n"
        "        print('refused')\n"
        "    except ImportError:\n"
        "        print('refused')\n"
    )
    made = subprocess.run([sys.executable, "-I", str(told)], capture_output=True, text=True, check=True, env={})
    expected = 3 if os.geteuid() else 2  # whoever may do all may fork, too
    assert made.stdout.split().count("refused") >= expected


def test_a_template_that_is_too_long_is_told() -> None:
    with pytest.raises(ConfigError, match="are the most"):
        template_dialect("x" * (MAX_TEMPLATE + 1))


@pytest.mark.parametrize("template", ["{{ raise_exception('never') }}", "{% for %}", "{{ nobody.knows }}"])
def test_a_template_that_renders_nothing_is_told_at_the_start(template: str) -> None:
    with pytest.raises(ConfigError, match="The chat template cannot be rendered: "):
        template_dialect(template)


def test_the_second_prompt_costs_little() -> None:
    """Its process stays: a prompt takes milliseconds, not the tenths of a second of a start."""
    asked = TemplateRenderer("{{ word }}")
    asked.render({"word": "one"}, "2026-01-01")
    (process,) = asked._idle
    assert asked.render({"word": "two"}, "2026-01-01") == "two"
    assert asked._idle == [process]
    asked.close()


def test_a_prompt_that_takes_long_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ends = threading.Event(), threading.Event()
    asks = TemplateRenderer._ask_process

    def asked(self: TemplateRenderer, process: "subprocess.Popen[str]", request: Any) -> dict[str, Any]:
        if request.get("variables") == {"word": "slow"}:
            begun.set()
            assert ends.wait(PATIENCE_S)
        return asks(self, process, request)

    monkeypatch.setattr(TemplateRenderer, "_ask_process", asked)
    template = TemplateRenderer("{{ word }}")
    slow = threading.Thread(target=template.render, args=({"word": "slow"}, "2026-01-01"))
    slow.start()
    assert begun.wait(PATIENCE_S)
    assert template.render({"word": "fast"}, "2026-01-01") == "fast"
    ends.set()
    slow.join(PATIENCE_S)
    assert len(template._idle) == 2
    template.close()
