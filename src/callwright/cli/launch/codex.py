"""Codex CLI: the configuration with which it runs on models of a gateway.

Codex offers `apply_patch` and tool search only to models that its catalogue describes, so there are two files: the
configuration with the provider, and a catalogue. docs/codex.md lists the fields that Codex 0.169.0 reads.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from callwright.cli.launch.setup import KEY, Setup, Target, Variable

_CONFIG: Final = "config.toml"
_CATALOGUE: Final = "callwright-models.json"
# The share of the window that the output of one tool may take; Codex leaves the rest of it out.
_OUTPUT_SHARE: Final = 8
_MAX_OUTPUT_TOKENS: Final = 10_000
_EFFORTS: Final = {
    "low": "Thinks little, answers soon.",
    "medium": "Thinks as long as most tasks need.",
    "high": "Thinks long, for hard tasks.",
}
# By whether the gateway searches the web; None if that is not known.
_SEARCH: Final[Mapping[bool | None, str]] = {
    True: 'web_search = "live"                  # the gateway searches',
    False: 'web_search = "disabled"              # the gateway has no [search]',
    None: 'web_search = "disabled"              # "live" where the gateway has [search]: it could not be asked',
}
_INSTRUCTIONS: Final = """\
You are a coding agent. You work in the terminal of a user, in the folder that the environment names, and you act
through tools until the task is done.

Working
- Look before you change: list and read the files that matter first. Search with `rg`, or `grep` where there is none.
- Do what was asked, in the style of the code around it, and nothing beside it. Leave other people's changes alone.
- Check your work: run the project's own tests, or the program. When a command fails, read what it says.
- Obey AGENTS.md files: one holds for its folder and all below, and the nearest counts.
- Destroy nothing that you were not asked to destroy: no `git reset --hard`, no deleting of files you did not make.
- Call several tools at once when they do not depend on each other.
- Say in a short sentence what you do next; at the end, say in a few lines what you changed and how you checked it.

Editing files
Change files with the tool `apply_patch`. Its input is the patch itself. Paths are relative. Lines that stay begin with
a space, removed lines with `-`, added lines with `+`; two or three lines that stay, before and after a change, say
where it is. `@@` begins another place in the same file and may name the function or class it is in. Line numbers
are not used.

*** Begin Patch
*** Update File: app/greet.py
@@ def greet(name):
     name = name.strip()
-    print("Hi " + name)
+    print(f"Hello, {name}!")
     return name
*** Add File: app/notes.txt
+A new file has a plus before each line.
*** Delete File: app/old.py
*** End Patch
"""


def codex(target: Target) -> Setup:
    """The setup of the Codex CLI."""
    models = catalogue(target.windows, images=target.images)
    return Setup(
        variables=(Variable("CODEX_HOME", str(target.folder)), target.key()),
        files={
            _CONFIG: config(target.model, target.base, target.searches, has_key=target.key_env is not None),
            _CATALOGUE: json.dumps(models, ensure_ascii=False, indent=2) + "\n",
        },
    )


def config(model: str, url: str, has_search: bool | None = None, *, has_key: bool = False) -> str:
    """The text of Codex's config.toml. `has_search`: whether the gateway searches the web; None if that is
    not known. `has_key`: whether it asks for a key.
    """
    key = f'env_key = "{KEY}"\n' if has_key else ""  # Codex refuses to start without a variable that it names
    return f"""\
model = {_quote(model)}
model_provider = "callwright"
model_catalog_json = "{_CATALOGUE}"
{_SEARCH[has_search]}
check_for_update_on_startup = false  # these two: Codex contacts the gateway and nothing else
analytics.enabled = false

[model_providers.callwright]
name = "Callwright"
base_url = {_quote(url)}
{key}wire_api = "responses"
supports_websockets = true
request_max_retries = 0  # Codex multiplies the two: by default a request that fails is made 30 times
stream_max_retries = 2
"""


def catalogue(windows: Mapping[str, int], *, images: bool = False) -> dict[str, Any]:
    """What Codex should know of models, by name with their windows, in the form that `codex debug models` prints."""
    described = enumerate(windows.items(), 1)
    return {"models": [_described(name, number, window, images) for number, (name, window) in described]}


def _described(name: str, priority: int, context_window: int, images: bool) -> dict[str, Any]:
    return {
        "slug": name,
        "display_name": name,
        "description": "A model of this Callwright gateway.",
        "visibility": "list",
        "supported_in_api": True,
        "priority": priority,
        "context_window": context_window,
        "truncation_policy": {
            "mode": "tokens",
            "limit": min(_MAX_OUTPUT_TOKENS, context_window // _OUTPUT_SHARE),
        },
        "input_modalities": ["text", "image"] if images else ["text"],
        "supported_reasoning_levels": [{"effort": level, "description": told} for level, told in _EFFORTS.items()],
        "support_verbosity": False,
        "shell_type": "unified_exec",
        "apply_patch_tool_type": "freeform",
        "supports_search_tool": True,
        "experimental_supported_tools": [],
        "base_instructions": _INSTRUCTIONS,
    }


def _quote(text: str) -> str:
    """A string of TOML; JSON's escapes are the same."""
    return json.dumps(text, ensure_ascii=False)
