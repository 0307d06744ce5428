"""`callwright codex`: the configuration with which the Codex CLI runs on models of a gateway.

Codex offers `apply_patch` and tool search only to models that its catalogue describes, so there are two files: the
configuration with the provider, and a catalogue. Which fields Codex 0.169.0 reads is told in docs/codex.md.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from callwright.cli.gateway_models import DEFAULT_WINDOW, checked_url, searches_web, unlisted_warning, windows_of
from callwright.errors import ConfigError

CONFIG: Final = "config.toml"
CATALOGUE: Final = "callwright-models.json"
# By which a file is known that was written here.
_HEADER: Final = "# Codex on a Callwright gateway. The catalogue lies beside this file."
_URL: Final = "http://127.0.0.1:8642/v1"
# Of the tokens that a model reads at once, so much may be the output of one tool; the rest of it Codex leaves out.
_OUTPUT_SHARE: Final = 8
_MAX_OUTPUT_TOKENS: Final = 10_000
_EFFORTS: Final = {
    "low": "Thinks little, answers soon.",
    "medium": "Thinks as long as most tasks need.",
    "high": "Thinks long, for hard tasks.",
}
# By whether the gateway searches the web; None where it does not say.
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
a space, removed lines with `-`, added lines with `+`; two or three lines that stay, before and behind a change, say
where it is. `@@` begins another place in the same file and may name the function or class it is in. There are no line
numbers.

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


@click.command()
@click.option("--model", metavar="NAME", help="The model; without it, all that the gateway serves, the first in use.")
@click.option("--url", metavar="URL", default=_URL, show_default=True, help="The gateway, with its /v1.")
@click.option(
    "--context-window",
    type=click.IntRange(8_192, 100_000_000),
    metavar="TOKENS",
    help="How much the model's server takes at once; Codex sums up before that is full.  [default: what "
    f"the gateway says, else {DEFAULT_WINDOW}]",
)
@click.option("--images", is_flag=True, help="The model sees images.")
@click.option(
    "--write",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the files, over earlier ones, instead of printing.",
)
def codex(model: str | None, url: str, context_window: int | None, images: bool, write: Path | None) -> None:
    """Print the configuration of the Codex CLI for this gateway: config.toml and a model catalogue.

    \b
    Examples:
      callwright codex --model simulated
      callwright codex --model simulated --write codex-home
    """
    url = _with_v1(url)
    windows = windows_of(model, url, context_window)
    names = list(windows)
    if model is not None and (warning := unlisted_warning(model, url)):
        click.echo(warning, err=True)
    files = {
        CONFIG: config(names[0], url, searches_web(url)),
        CATALOGUE: json.dumps(catalogue(windows, images=images), ensure_ascii=False, indent=2) + "\n",
    }
    if write is None:
        click.echo("".join(f"# --- {name} ---\n{text}" for name, text in files.items()), nl=False)
        return
    _write(write, files)
    click.echo(f"Wrote {' and '.join(files)} into {write}. Start Codex with:\n  CODEX_HOME={write.absolute()} codex")


def config(model: str, url: str, has_search: bool | None = None) -> str:
    """The text of Codex's config.toml. `has_search`: whether the gateway searches the web; None where it
    does not say.
    """
    return f"""\
{_HEADER}
model = {_quoted(model)}
model_provider = "callwright"
model_catalog_json = "{CATALOGUE}"
{_SEARCH[has_search]}
check_for_update_on_startup = false  # these two: Codex contacts the gateway and nothing else
analytics.enabled = false

[model_providers.callwright]
name = "Callwright"
base_url = {_quoted(url)}
wire_api = "responses"
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


def _quoted(text: str) -> str:
    """A string of TOML; JSON's escapes are the same."""
    return json.dumps(text, ensure_ascii=False)


def _with_v1(url: str) -> str:
    url = checked_url(url, _URL)
    if not url.endswith("/v1"):
        raise ConfigError(f"--url: expected the gateway's base URL with its /v1, got {url!r}. Is it {url}/v1?")
    return url


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write them, over those that this command wrote before. Raises `ConfigError` for a configuration of the user's."""
    try:
        there = folder / CONFIG
        if os.path.lexists(there) and not there.read_bytes().startswith(_HEADER.encode()):
            raise ConfigError(f"{there}: there already, and not from here. Choose another folder, or move it away.")
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot write into {folder}: {error.strerror}.") from error
