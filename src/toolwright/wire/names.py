"""The names by which the model knows the tools of a request, and the way back to what the client knows.

Namespaces, built-in kinds of tools and names of any length meet one flat list of functions here. A flat name depends on
the tool alone, unless another tool has it already.
"""

import hashlib
from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = ["ClientTool", "ToolKind", "ToolNames"]

ToolKind: TypeAlias = Literal["function", "custom", "tool_search", "shell", "local_shell", "apply_patch"]
_MAX_NAME = 64
_DIGEST = 8


class ClientTool(Struct, frozen=True):
    """A tool as the client knows it."""

    name: str
    namespace: str | None = None
    kind: ToolKind = "function"


class ToolNames:
    """Flat names and client tools of one request, both ways."""

    def __init__(self) -> None:
        self._clients: dict[str, ClientTool] = {}
        self._flat: dict[tuple[str | None, str], str] = {}

    def add(self, tool: ClientTool) -> str:
        """Give a tool its flat name; the same one if it has one."""
        key = (tool.namespace or None, tool.name)
        if key not in self._flat:
            name = _flattened(tool.name, tool.namespace)
            if name in self._clients or (tool.namespace and len(name) > _MAX_NAME):
                name = _with_digest(name, tool)
            self._flat[key] = name
        name = self._flat[key]
        self._clients[name] = tool
        return name

    def has(self, name: str, namespace: str | None) -> bool:
        """Whether the request offers this tool."""
        return (namespace or None, name) in self._flat

    def flat(self, name: str, namespace: str | None = None) -> str:
        """The flat name of a tool, also of one that the request does not offer any more.

        A bare name means the tool of a namespace when no other has it.
        """
        known = self._flat.get((namespace or None, name))
        if known is None and not namespace:
            same = [flat for (_, own), flat in self._flat.items() if own == name]
            known = same[0] if len(same) == 1 else None
        return known or (_flattened(name, namespace)[:_MAX_NAME] if namespace else name)

    def client(self, flat: str) -> ClientTool:
        """What the client knows a tool as; a name that was not offered stays as it is."""
        return self._clients.get(flat) or ClientTool(flat)


def _flattened(name: str, namespace: str | None) -> str:
    if namespace == "functions":  # OpenAI's own for tools without one, as which prompts show it
        return name
    return f"{namespace}{'' if namespace.endswith('__') else '__'}{name}" if namespace else name


def _with_digest(name: str, tool: ClientTool) -> str:
    digest = hashlib.blake2s(f"{tool.namespace}\0{tool.name}".encode(), digest_size=_DIGEST // 2).hexdigest()
    return f"{name[: _MAX_NAME - _DIGEST - 1]}_{digest}"
