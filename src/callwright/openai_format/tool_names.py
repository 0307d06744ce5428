"""The model's names for the tools of a request, and the mapping back to the client's names.

Namespaces, built-in kinds of tools and names of any length meet one flat list of functions here. A flat name depends on
the tool alone, unless another tool has it already.
"""

import hashlib
import re
from typing import Literal, TypeAlias

from msgspec import Struct

ToolKind: TypeAlias = Literal[
    "function", "custom", "mcp", "tool_search", "shell", "local_shell", "apply_patch", "web_search"
]
_MAX_NAME = 64
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")  # than the characters of names; MCP servers use dots, too
_DIGEST = 8
_FUNCTIONS = "functions"  # OpenAI's own namespace for tools without one, as which prompts show it


class ClientTool(Struct, frozen=True):
    """A tool as the client knows it. `is_async`: its output may arrive later."""

    name: str
    namespace: str | None = None
    kind: ToolKind = "function"
    is_async: bool = False


class ToolNames:
    """Flat names and client tools of one request, both ways. `aliases`: a name without a namespace that servers do not
    take is changed, too. `renames`: the model knows a tool by another name than the client.
    """

    def __init__(self, *, aliases: bool = False) -> None:
        self.renames = False
        self._aliases = aliases
        self._clients: dict[str, ClientTool] = {}
        self._flat: dict[tuple[str | None, str], str] = {}

    def __copy__(self) -> "ToolNames":
        """The same names, which change by themselves."""
        made = object.__new__(ToolNames)
        vars(made).update(vars(self))
        made._clients, made._flat = self._clients.copy(), self._flat.copy()
        return made

    def add(self, tool: ClientTool) -> str:
        """Give a tool its flat name; the same one if it has one."""
        key = (tool.namespace or None, tool.name)
        if key not in self._flat:
            name, tries = self._flattened(tool.name, tool.namespace), 0
            while name in self._clients:
                name = _with_digest(name, tool.name, tool.namespace, tries)
                tries += 1
            self._flat[key] = name
        name = self._flat[key]
        self._clients[name] = tool
        self.renames = self.renames or name != tool.name
        return name

    def has(self, name: str, namespace: str | None) -> bool:
        """Whether the request offers this tool."""
        return (namespace or None, name) in self._flat

    def knows(self, flat: str) -> bool:
        """Whether this is the flat name of a tool of the request."""
        return flat in self._clients

    def flat(self, name: str, namespace: str | None = None) -> str:
        """The flat name of a tool, also of one that the request does not offer any more.

        A bare name means the tool of a namespace when no other has it.
        """
        known = self._flat.get((namespace or None, name))
        if known is None and not namespace:
            same = [flat for (_, own), flat in self._flat.items() if own == name]
            known = same[0] if len(same) == 1 else None
        return known or self._flattened(name, namespace)

    def client(self, flat: str) -> ClientTool:
        """The tool as the client knows it; a name that was not offered is unchanged."""
        return self._clients.get(flat) or ClientTool(flat)

    def in_words(self, text: str) -> str:
        """A text for the client, with the client's names of tools."""
        for flat, tool in self._clients.items():
            if flat != tool.name:
                text = text.replace(flat, tool.name)
        return text

    def _flattened(self, name: str, namespace: str | None) -> str:
        """A tool within its namespace as one name; a digest is appended if it had to be changed."""
        if not namespace or namespace == _FUNCTIONS:
            return name if not self._aliases or _is_name(name) else _with_digest(_OTHER.sub("_", name), name, None)
        flat = f"{namespace}{'' if namespace.endswith('__') else '__'}{name}"
        return flat if _is_name(flat) else _with_digest(_OTHER.sub("_", flat), name, namespace)


def _is_name(flat: str) -> bool:
    return 0 < len(flat) <= _MAX_NAME and not _OTHER.search(flat)


def _with_digest(flat: str, name: str, namespace: str | None, tries: int = 0) -> str:
    told = f"{namespace}\0{name}" + "\0" * tries
    digest = hashlib.blake2s(told.encode(errors="surrogatepass"), digest_size=_DIGEST // 2).hexdigest()
    return f"{flat[: _MAX_NAME - _DIGEST - 1]}_{digest}"
