"""The protocol of hooks: rules of your own at four places of a turn.

A hook is a function. It takes one of the four inputs below and returns a `Verdict`, or None to allow:

- `RequestInput`: a request, after its key and its form were checked, before anything is asked;
- `PromptInput`: a prompt for a model's server, once per attempt;
- `CallInput`: a checked call, before the client gets it or the gateway runs it;
- `ResultInput`: the output of a tool, before the model reads it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, final, get_args

from msgspec import UNSET, Struct

from callwright.conversation import Call, CallOutput, Conversation, FunctionTool, Item, Message

Place: TypeAlias = Literal["request", "prompt", "call", "result"]
PLACES: tuple[Place, ...] = get_args(Place)
Action: TypeAlias = Literal["allow", "deny", "ask", "replace"]


class _Asked(Struct, frozen=True, kw_only=True):
    """What each input has. `key` is the name of the client's key, empty without keys; `model` the name that the client
    uses.
    """

    key: str
    model: str
    request_id: str = ""

    def _about(self) -> dict[str, Any]:
        return {"key": self.key, "model": self.model, "request_id": self.request_id}


@final
class RequestInput(_Asked, frozen=True, kw_only=True):
    """A request."""

    conversation: Conversation

    place: ClassVar[Place] = "request"

    def as_json(self) -> dict[str, Any]:
        """The body for a hook over HTTP."""
        items = [_item(item) for item in self.conversation.items]
        return {**self._about(), "items": items, "tools": [tool.as_openai() for tool in self.conversation.tools]}


@final
class PromptInput(_Asked, frozen=True, kw_only=True):
    """What goes to the server `upstream`, which calls the model `upstream_model`: a rendered `prompt`, or `messages`
    with `tools`.
    """

    upstream: str
    upstream_model: str
    prompt: str | None = None
    messages: Sequence[Mapping[str, Any]] | None = None
    tools: Sequence[Mapping[str, Any]] | None = None

    place: ClassVar[Place] = "prompt"

    def as_json(self) -> dict[str, Any]:
        """The body for a hook over HTTP."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if getattr(self, name) is not None}


@final
class CallInput(_Asked, frozen=True, kw_only=True):
    """A call. `arguments` is the value of its JSON, or the text of a custom tool; None if it is not JSON. `tool` is the
    tool as the request offers it, None if it does not. An incomplete call (`call.complete`) must not be run.
    """

    call: Call
    arguments: Any
    tool: FunctionTool | None = None

    place: ClassVar[Place] = "call"

    def as_json(self) -> dict[str, Any]:
        """The body for a hook over HTTP."""
        call = self.call
        return {
            **self._about(),
            "call": {
                "name": call.name,
                "namespace": call.namespace,
                "kind": call.kind,
                "arguments": self.arguments,
                "text": call.arguments,
                "complete": call.complete,
            },
            "tool": None if self.tool is None else self.tool.as_openai(),
        }


@final
class ResultInput(_Asked, frozen=True, kw_only=True):
    """The output `text` of the tool `name`. `call` is the call that it answers, None if the history has none."""

    name: str
    text: str
    call: Call | None = None

    place: ClassVar[Place] = "result"

    def as_json(self) -> dict[str, Any]:
        """The body for a hook over HTTP."""
        arguments = None if self.call is None else self.call.arguments
        return {**self._about(), "result": {"name": self.name, "text": self.text, "arguments": arguments}}


HookInput: TypeAlias = RequestInput | PromptInput | CallInput | ResultInput


@final
class Verdict(Struct, frozen=True, forbid_unknown_fields=True):
    """The answer of a hook.

    `deny` stops the request, leaves the call out, or withholds the result; the client, or the model in place of the
    result, reads `message`. `ask` is the same for a call that a person must approve first. `replace` has the
    `arguments` of a call, which must match the tool's schema, or the `text` of a result. `secrets` are texts that
    records and pages must not show, whatever the action.
    """

    action: Action = "allow"
    message: str = ""
    arguments: Any = UNSET
    text: str | None = None
    secrets: tuple[str, ...] = ()


ALLOW = Verdict()
Hook: TypeAlias = Callable[[HookInput], Verdict | None]


def _item(item: Item) -> dict[str, Any]:
    if isinstance(item, Message):
        return {"type": "message", "role": item.role, "text": item.text, "has_media": item.has_media}
    if isinstance(item, Call):
        return {"type": "call", "id": item.id, "name": item.name, "arguments": item.arguments}
    if isinstance(item, CallOutput):
        return {"type": "output", "call_id": item.call_id, "text": item.text, "has_media": item.has_media}
    return {"type": "reasoning", "text": item.text}
