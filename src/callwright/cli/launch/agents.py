"""The agents that `callwright launch` starts, as a table, and how each is set up.

Each setup is one that ran at a gateway (`scripts/agents`, tests/clients/agents/clients.toml), with the agent's own
variable for the folder of its configuration, so that the user's configuration stays untouched.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct

from callwright.cli.launch.claude import claude
from callwright.cli.launch.codex import codex
from callwright.cli.launch.setup import KEY, KEY_ARGUMENT, Setup, Target, Variable, longest_answer

_PROVIDER: Final = "callwright"
# Of a window, this part may be full before Vibe summarizes.
_COMPACT_SHARE: Final = 0.75


class Agent(Struct, frozen=True, kw_only=True):
    """An agent: the program it is, how it is installed, and its setup. `options` are those of `callwright launch` that
    it knows.
    """

    shown: str
    program: str
    install: str
    setup: Callable[[Target], Setup]
    options: tuple[str, ...] = ()


def _opencode(variable: str, target: Target) -> Setup:
    """opencode, or a fork of it, which finds the same file by its own variable."""
    return Setup(
        variables=(Variable(variable, str(target.folder / "opencode.json")), target.key()),
        files={"opencode.json": _json(opencode_config(target))},
    )


def opencode_config(target: Target) -> dict[str, Any]:
    """opencode.json. opencode knows the windows of models that models.dev lists; any other needs its window here, or
    the conversation is shortened only when the server refuses.
    """
    first = f"{_PROVIDER}/{target.model}"
    models = {
        name: {
            "name": name,
            "tool_call": True,
            "attachment": target.images,
            "limit": {"context": window, "output": longest_answer(window)},
        }
        for name, window in target.windows.items()
    }
    return {
        "$schema": "https://opencode.ai/config.json",
        "model": first,
        "small_model": first,  # for titles, which would go to another service
        "provider": {
            _PROVIDER: {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Callwright",
                "options": {"baseURL": target.base, "apiKey": f"{{env:{KEY}}}"},
                "models": models,
            }
        },
    }


def _qwen(target: Target) -> Setup:
    model = {
        "id": target.model,
        "envKey": KEY,
        "baseUrl": target.base,
        "generationConfig": {"contextWindowSize": target.window},
    }
    settings = {
        "modelProviders": {"openai": [model]},
        "security": {"auth": {"selectedType": "openai"}},
        "model": {"name": target.model},
    }
    file = "settings.json"
    return Setup(
        variables=(Variable("QWEN_CODE_SYSTEM_SETTINGS_PATH", str(target.folder / file)), target.key()),
        files={file: _json(settings)},
    )


def _cline(target: Target) -> Setup:
    provider = "openai-compatible"
    login = ("cline", "auth", "-p", provider, "-k", KEY_ARGUMENT, "-m", target.model, "-b", target.base)
    return Setup(
        variables=(Variable("CLINE_DATA_DIR", str(target.folder)), target.key()),
        before=(login,),
        arguments=("-P", provider, "-m", target.model),
    )


def _continue(target: Target) -> Setup:
    model = {
        "name": target.model,
        "provider": "openai",
        "model": target.model,
        "apiBase": target.base,
        "apiKey": f"${{{{ secrets.{KEY} }}}}" if target.key_env else "any",
        "roles": ["chat", "edit", "apply"],
        "capabilities": ["tool_use"],
        "defaultCompletionOptions": {"contextLength": target.window},
    }
    config = {"name": "Callwright", "version": "0.0.1", "schema": "v1", "models": [model]}
    file = "config.yaml"  # JSON is YAML
    return Setup(
        variables=(target.key(),),
        files={file: _json(config)},
        arguments=("--config", str(target.folder / file)),
    )


def _vibe(target: Target) -> Setup:
    lines = [
        'active_model = "local"',
        f"auto_compact_threshold = {int(target.window * _COMPACT_SHARE)}",
        "[[providers]]",
        f'name = "{_PROVIDER}"',
        f"api_base = {json.dumps(target.base)}",
        f'api_key_env_var = "{KEY}"',
        'api_style = "openai"',
        'backend = "generic"',
        "[[models]]",
        f"name = {json.dumps(target.model, ensure_ascii=False)}",
        f'provider = "{_PROVIDER}"',
        'alias = "local"',
    ]
    return Setup(
        variables=(Variable("VIBE_HOME", str(target.folder)), target.key()),
        files={"config.toml": "\n".join((*lines, ""))},
    )


def _crush(target: Target) -> Setup:
    model = {
        "id": target.model,
        "name": target.model,
        "context_window": target.window,
        "default_max_tokens": target.output,
    }
    provider = {
        "name": "Callwright",
        "type": "openai-compat",
        "base_url": target.base,
        "api_key": f"${KEY}",
        "models": [model],
    }
    chosen = {"provider": _PROVIDER, "model": target.model}
    config = {"providers": {_PROVIDER: provider}, "models": {"large": chosen, "small": chosen}}
    return Setup(
        variables=(Variable("CRUSH_GLOBAL_CONFIG", str(target.folder)), target.key()),
        files={"crush.json": _json(config)},
    )


def _pi(target: Target) -> Setup:
    model = {
        "id": target.model,
        "name": target.model,
        "reasoning": False,
        "input": ["text", "image"] if target.images else ["text"],
        "contextWindow": target.window,
        "maxTokens": target.output,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    provider = {"baseUrl": target.base, "api": "openai-completions", "apiKey": KEY, "models": [model]}
    return Setup(
        variables=(Variable("PI_CODING_AGENT_DIR", str(target.folder)), target.key()),
        files={"models.json": _json({"providers": {_PROVIDER: provider}})},
        arguments=("--provider", _PROVIDER, "--model", target.model),
    )


def _aider(target: Target) -> Setup:
    return Setup(
        variables=(Variable("OPENAI_API_BASE", target.base), target.key("OPENAI_API_KEY")),
        arguments=("--model", f"openai/{target.model}"),
    )


def _mini(target: Target) -> Setup:
    return Setup(
        variables=(
            Variable("OPENAI_API_BASE", target.base),
            target.key("OPENAI_API_KEY"),
            Variable("MSWEA_CONFIGURED", "true", "It asks for no other model's key."),
            Variable("MSWEA_COST_TRACKING", "ignore_errors", "Your own model has no price."),
        ),
        arguments=("-m", f"openai/{target.model}"),
    )


def _gptme(target: Target) -> Setup:
    return Setup(
        variables=(Variable("OPENAI_BASE_URL", target.base), target.key("OPENAI_API_KEY")),
        arguments=("--tool-format", "tool", "-m", f"local/{target.model}"),  # else it writes calls as text
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


_NPM: Final = "npm install -g"
_UV: Final = "uv tool install"
AGENTS: Final[Mapping[str, Agent]] = {
    "claude": Agent(
        shown="Claude Code",
        program="claude",
        install=f"{_NPM} @anthropic-ai/claude-code",
        setup=claude,
        options=("simple",),
    ),
    "codex": Agent(shown="Codex", program="codex", install=f"{_NPM} @openai/codex", setup=codex, options=("images",)),
    "opencode": Agent(
        shown="opencode",
        program="opencode",
        install=f"{_NPM} opencode-ai",
        setup=partial(_opencode, "OPENCODE_CONFIG"),
        options=("images",),
    ),
    "qwen": Agent(shown="Qwen Code", program="qwen", install=f"{_NPM} @qwen-code/qwen-code", setup=_qwen),
    "cline": Agent(shown="Cline", program="cline", install=f"{_NPM} cline", setup=_cline),
    "continue": Agent(shown="Continue", program="cn", install=f"{_NPM} @continuedev/cli", setup=_continue),
    "vibe": Agent(shown="Mistral Vibe", program="vibe", install=f"{_UV} mistral-vibe", setup=_vibe),
    "crush": Agent(shown="Crush", program="crush", install=f"{_NPM} @charmland/crush", setup=_crush),
    "pi": Agent(
        shown="pi", program="pi", install=f"{_NPM} @earendil-works/pi-coding-agent", setup=_pi, options=("images",)
    ),
    "kilo": Agent(
        shown="Kilo Code",
        program="kilo",
        install=f"{_NPM} @kilocode/cli",
        setup=partial(_opencode, "KILO_CONFIG"),
        options=("images",),
    ),
    "aider": Agent(shown="aider", program="aider", install=f"{_UV} aider-chat", setup=_aider),
    "mini": Agent(shown="mini-SWE-agent", program="mini", install=f"{_UV} mini-swe-agent", setup=_mini),
    "gptme": Agent(shown="gptme", program="gptme", install=f"{_UV} gptme", setup=_gptme),
}
