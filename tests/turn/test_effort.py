"""What a request asks of the effort has its effect in raw prompts, or is told to have none."""

from typing import Any

import pytest

from callwright.conversation import Conversation, Message, TextPart
from callwright.dialects.base import RenderOptions, dialect_names, get_dialect
from callwright.turn.model import Model
from callwright.turn.plan import build_generation_request
from callwright.upstreams.simulated.model import SimulatedUpstream

ASKED = Conversation((Message("user", (TextPart("How deep is it?"),)),))
LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# By how much is thought, where the format has a place for it: what stands in the prompt.
SHOWN = {
    "deepseek_v4": {"low": "<think>", "high": "Absolute maximum", "max": "Beyond maximum", "none": "</think>"},
    "deepseek_v41": {"low": "Effort: 50", "high": "Effort: 75", "max": "Effort: 100", "none": "</think>"},
    "harmony": {"low": "Reasoning: low", "high": "Reasoning: high"},
    "hy_v3": {"low": "reasoning_effort:low", "high": "reasoning_effort:high", "none": "reasoning_effort:no_think"},
    "k2_horizon": {"low": "<ifm|think_faster>", "high": "<ifm|think>", "none": "assistant\n"},
    "kimi_k3": {"low": "thinking_effort=low", "max": "thinking_effort=max"},
    "muse": {"low": "strength: low", "high": "strength: high"},
}


def asked(dialect: str, **fields: Any) -> tuple[str, set[str]]:
    """The prompt, and the fields that are left for the server or had no effect."""
    model = Model("m", SimulatedUpstream(), "m", mode="raw", dialect=dialect)
    request = build_generation_request(model, ASKED, fields, "2026-11-23")
    assert request.prompt is not None
    return request.prompt.text, {*request.fields, *request.unsent}


@pytest.mark.parametrize(
    ("dialect", "level", "shown"), [(name, *each) for name, levels in SHOWN.items() for each in levels.items()]
)
def test_the_effort_of_a_request_stands_in_the_prompt(dialect: str, level: str, shown: str) -> None:
    prompt, left = asked(dialect, reasoning_effort=level)
    assert shown in prompt
    assert left == set()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dialect", dialect_names())
def test_an_effort_changes_the_options_or_stays_a_field_that_is_told(dialect: str, level: str) -> None:
    options = get_dialect(dialect).options()
    prompt, left = asked(dialect, reasoning_effort=level)
    if left:
        assert prompt == asked(dialect)[0]
        assert not isinstance(options.with_effort(level), RenderOptions)
    else:
        assert isinstance(options.with_effort(level), type(options))


@pytest.mark.parametrize("flag", ["enable_thinking", "thinking"])
def test_a_flag_for_thinking_that_had_its_effect_is_no_field_any_more(flag: str) -> None:
    prompt, left = asked("deepseek_v41", chat_template_kwargs={flag: False})
    assert prompt.endswith("</think>")
    assert left == set()
    assert asked("deepseek_v41", chat_template_kwargs={flag: False, "other": 1})[1] == {"chat_template_kwargs"}
