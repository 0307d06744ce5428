"""The capabilities of a model in the lists of models, in the words of each client's API, and its mode."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from callwright.gateway.config.config import ModelConfig
from tests.conftest import Served
from tests.support.http_client import request

ANTHROPIC: Final = {"anthropic-version": "2023-06-01"}
PARAMETERS: Final = {
    *("tools", "tool_choice", "parallel_tool_calls", "response_format", "structured_outputs"),
    *("max_tokens", "stop", "temperature", "top_p", "seed", "presence_penalty", "frequency_penalty"),
}
TOOLS: Final = {"completion", "tools", "tool_use"}
SEES: Final[Mapping[str, Any]] = {"input_modalities": ("text", "image")}
# A model, and its card: mode, dialect, inputs, whether it reasons.
LISTED: Final[dict[str, tuple[dict[str, Any], str, str | None, list[str] | None, bool | None]]] = {
    "raw, reasons": ({"mode": "raw", "dialect": "harmony"}, "raw", "harmony", ["text"], True),
    "raw, does not": ({"mode": "raw", "dialect": "llama3_json"}, "raw", "llama3_json", ["text"], False),
    "raw, reasons unless it is off": ({"mode": "raw", "dialect": "gemma4"}, "raw", "gemma4", ["text"], True),
    "raw, off by its effort": (
        {"mode": "raw", "dialect": "cohere_command5", "options": {"reasoning_effort": "none"}},
        *("raw", "cohere_command5", ["text"], False),
    ),
    "prompt": ({"mode": "prompt", "dialect": "hermes"}, "prompt", "hermes", None, None),
    "prompt, sees": ({"mode": "prompt", "dialect": "json", **SEES}, "prompt", "json", ["text", "image"], False),
    "native": ({"mode": "native"}, "native", None, None, None),
    "native, sees": ({"mode": "native", **SEES}, "native", None, ["text", "image"], None),
    "native, sees nothing": ({"mode": "native", "input_modalities": ("text",)}, "native", None, ["text"], None),
}


def cards(gateway: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """The model's card, which is the same in the list and by its name."""
    (listed,) = request(f"{gateway}/v1/models", method="GET", headers=headers).json["data"]
    one = request(f"{gateway}/v1/models/m", method="GET", headers=headers).json
    assert one == listed
    return dict(one)


@pytest.mark.parametrize("case", LISTED)
def test_a_card_says_what_is_known(case: str, serve: Served) -> None:
    given, mode, dialect, inputs, reasons = LISTED[case]
    gateway = serve(ModelConfig(name="m", upstream="simulated", **given))
    card = cards(gateway, {})
    assert (card["mode"], card.get("dialect")) == (mode, dialect)
    assert set(card["supported_parameters"]) >= PARAMETERS
    assert ("reasoning" in card["supported_parameters"]) is bool(reasons)
    expected = TOOLS | ({"vision"} if "image" in (inputs or ()) else set()) | ({"thinking"} if reasons else set())
    assert set(card["capabilities"]) == expected
    if inputs is None:
        assert "architecture" not in card
    else:
        modality = f"{'+'.join(inputs)}->text"
        wanted = {"modality": modality, "input_modalities": inputs, "output_modalities": ["text"]}
        assert card["architecture"] == wanted


@pytest.mark.parametrize("case", LISTED)
def test_anthropics_clients_get_an_object(case: str, serve: Served) -> None:
    given, _, _, inputs, reasons = LISTED[case]
    gateway = serve(ModelConfig(name="m", upstream="simulated", **given))
    found = {name: one["supported"] for name, one in cards(gateway, ANTHROPIC)["capabilities"].items()}
    known = {
        "structured_outputs": True,
        "image_input": None if inputs is None else "image" in inputs,
        "thinking": reasons,
    }
    assert found == {name: can for name, can in known.items() if can is not None}
