"""Builds the request to the upstream: mode, prompt or messages, tools, constraint. A pure function of its arguments."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final

from msgspec.structs import replace

from callwright.calls.history import apply_history_rules, describe_media
from callwright.constraints.compile import constraint_of
from callwright.conversation import (
    AssistantTurn,
    Call,
    CallOutput,
    Conversation,
    FunctionTool,
    Item,
    Message,
    NamedTool,
    TextPart,
)
from callwright.dialects.base import Dialect, RenderOptions, get_dialect, read_options
from callwright.dialects.detect import history_form, options_by_name
from callwright.dialects.prompts.chat_messages import format_note
from callwright.errors import ConfigError
from callwright.memo.prefixes import SharedList, fold, once
from callwright.openai_format.messages import shared_messages
from callwright.openai_format.response_format import write_response_format
from callwright.openai_format.tool_choice import write_tool_choice
from callwright.prompt import Control, Prompt, Text
from callwright.schema.plain import type_words
from callwright.tolerant_json.codec import decode
from callwright.turn.model import UNKNOWN, Mode, Model
from callwright.turn.token_limit import token_limit
from callwright.upstreams.base import GenerationRequest
from callwright.upstreams.completions import CHAT_ONLY

# From this number of items or characters on, rendering a conversation takes more than some milliseconds.
_MANY_ITEMS: Final = 100
_MANY_CHARACTERS: Final = 65_536
# The same for tools, in characters of JSON: most are known, and their rendering is cached.
_MANY_OF_TOOLS: Final = 262_144


def is_large(conversation: Conversation) -> bool:
    """Whether it takes its time to build a request of this conversation."""
    items = conversation.items
    return (
        len(items) > _MANY_ITEMS
        or fold(items, 0, _characters) > _MANY_CHARACTERS
        or sum([len(tool.openai_json) for tool in conversation.tools]) > _MANY_OF_TOOLS
    )


def _characters(before: int, items: Sequence[Item], start: int) -> int:
    return before + sum([len(item.arguments) if type(item) is Call else len(item.text) for item in items[start:]])


def is_slow(model: Model) -> bool:
    """Whether it takes its time to build a request for this model, whatever the conversation."""
    return model.mode != "native" and model.dialect is not None and get_dialect(model.dialect).is_slow


def _unshown(conversation: Conversation, dialect: Dialect | None) -> frozenset[str]:
    """Fields for the keywords and types of the tools' schemas that this dialect does not show faithfully.

    Keywords are missing in its prompt, types are read as others.
    """
    tools = conversation.shown_tools or conversation.tools
    if not tools:
        return frozenset()
    make = lambda: frozenset([f"tools.parameters.type:{word}" for tool in tools for word in type_words(tool)])  # noqa: E731
    words = once(tools, "type words", make)
    if dialect is None:
        return words
    return words.union([f"tools.parameters.{key}" for key in dialect.hidden_keywords(tools)])


def build_generation_request(
    model: Model, conversation: Conversation, fields: Mapping[str, Any], today: str
) -> GenerationRequest:
    """The request to the upstream for one attempt.

    `fields` are sampling and other fields of the client's request. `today` (YYYY-MM-DD) goes into prompts that show the
    date. Raises `ConfigError` for a model that needs a dialect and has none, and `RequestError` if its prompt cannot
    hold the conversation.
    """
    asked = GenerationRequest(model=model.upstream_model, conversation=conversation, fields={**model.fields, **fields})
    mode, name = _select_mode(model, conversation)
    if mode == "native":
        return _native(asked, conversation, model)
    if name is None:
        raise ConfigError(f"Model {model.name!r} in mode {mode!r} needs a dialect.")
    dialect = get_dialect(name)
    asked = replace(asked, dialect=name)
    given = (
        model.options if isinstance(model.options, dialect.options) else _options_by_name(name, model.upstream_model)
    )
    options, heeded = _options(given, fields, today, speaks=bool(conversation.prefill))
    names = [item.name for item in conversation.items if type(item) is Message and item.name]
    unsaid = _unshown(conversation, dialect).union(["messages.name"] if names else ())
    constrains = model.constrain and not conversation.prefill  # a grammar would have to begin in its middle
    if mode == "raw":
        prompt = _prompt(model, dialect, conversation, options)
        chat_only = CHAT_ONLY.intersection(asked.fields)
        return replace(
            asked,
            fields={name: value for name, value in asked.fields.items() if name not in chat_only},
            unsent=(chat_only - heeded).union(unsaid),
            prompt=prompt,
            stops=dialect.stops,
            stop_token_ids=dialect.stop_token_ids,
            stop_texts=dialect.stop_texts,
            constraint=constraint_of(name, conversation, prompt, token_limit(asked.fields)) if constrains else None,
        )
    format_ = conversation.response_format
    if format_ is not None and not (conversation.tools and conversation.tool_choice != "none"):
        asked = replace(asked, fields={**asked.fields, "response_format": write_response_format(format_)})
    if conversation.prefill:
        begun = Message("assistant", (TextPart(conversation.prefill),))
        conversation = replace(conversation, items=(*conversation.items, begun))
        asked = replace(asked, fields={**asked.fields, **_CONTINUES})
    return replace(
        asked,
        unsent=unsaid,
        messages=dialect.messages(_with_found_tools(conversation), options),
        constraint=constraint_of(name, conversation, None, token_limit(asked.fields)) if constrains else None,
    )


def _prompt(model: Model, dialect: Dialect, conversation: Conversation, options: RenderOptions) -> Prompt:
    """The prompt of mode raw."""
    shown: Sequence[Item] = conversation.items
    if model.describe_media or model.requests.is_lenient:
        shown = describe_media(shown, (Message, CallOutput) if model.describe_media else (CallOutput,))
    listed = _with_found_tools(conversation) if conversation.shown_tools else conversation
    prompt = dialect.render(replace(listed, items=shown), options)
    return _with_prefill(prompt, dialect, conversation.prefill) if conversation.prefill else prompt


def _with_found_tools(conversation: Conversation) -> Conversation:
    """The conversation as its prompt is rendered.

    Without any tool a prompt would not explain how to call one. A demanded call may be of a tool that was found.
    """
    shown = conversation.shown_tools
    if not shown:
        return conversation
    allowed = conversation.allowed_tools
    if allowed is None and conversation.tool_choice == "required":
        allowed = tuple(tool.name for tool in conversation.tools)
    return replace(conversation, tools=shown, allowed_tools=allowed)


def _select_mode(model: Model, conversation: Conversation) -> tuple[Mode, str | None]:
    """Mode and dialect of one request: a required call needs mode prompt if the server has no `tool_choice`."""
    choice = conversation.tool_choice
    demanded = bool(conversation.tools) and (choice == "required" or isinstance(choice, NamedTool))
    if model.mode == "native" and demanded and not model.supports_tool_choice:
        return "prompt", UNKNOWN
    return model.mode, model.dialect


def _native(asked: GenerationRequest, conversation: Conversation, model: Model) -> GenerationRequest:
    """The request to a server that renders and parses itself, with a history that its chat template can render.

    Most servers hold all of an answer to a `response_format`, and let no call through. While one is possible the model
    reads it instead; the answer is checked here, and asked for again.
    """
    items = apply_history_rules(conversation.items, history_form(asked.model))
    messages: list[dict[str, Any]] = shared_messages(items)
    fields = dict(asked.fields)
    if conversation.response_format is not None:
        if model.format_beside_tools or not conversation.tools or conversation.tool_choice == "none":
            fields["response_format"] = write_response_format(conversation.response_format)
        else:
            messages = _with_note(messages, "\n\n".join(format_note(conversation)))
    if conversation.tools and not conversation.parallel_tool_calls:
        fields["parallel_tool_calls"] = False
    if conversation.prefill:
        messages = [*messages, {"role": "assistant", "content": conversation.prefill}]
        fields |= _CONTINUES
    choice = conversation.tool_choice
    return replace(
        asked,
        fields=fields,
        messages=list(map(_with_objects, messages)) if model.arguments_as_objects else messages,
        tools=once(conversation.tools, "openai", partial(_shared_tools, conversation.tools)) or None,
        tool_choice=None if choice == "auto" else write_tool_choice(choice),
        unsent=_unshown(conversation, None),
    )


def _shared_tools(tools: Sequence[FunctionTool]) -> SharedList:
    return SharedList([tool.openai for tool in tools])


def _with_note(messages: list[dict[str, Any]], note: str) -> list[dict[str, Any]]:
    """The messages with a note to the model, in the first if that is the system's: many templates accept one."""
    first = messages[0] if messages else {}
    if first.get("role") == "system" and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{note}"}, *messages[1:]]
    return [{"role": "system", "content": note}, *messages]


def _with_objects(message: dict[str, Any]) -> dict[str, Any]:
    """A message with the arguments of its calls as objects, not JSON text."""
    calls = [
        {**call, "function": {**call["function"], "arguments": decode(call["function"]["arguments"])}}
        for call in message.get("tool_calls", ())
    ]
    return {**message, "tool_calls": calls} if calls else message


@lru_cache(maxsize=256)
def _options_by_name(dialect: str, model: str) -> RenderOptions:
    """The options of a model for which none are configured."""
    return read_options(dialect, options_by_name(dialect, model))


def _options(
    options: RenderOptions, fields: Mapping[str, Any], today: str, *, speaks: bool
) -> tuple[RenderOptions, frozenset[str]]:
    """The configured options; the request and the date fill in the unset ones.

    Also returns the fields of the request that are used by this. `speaks`: the answer has begun, so there is no
    reasoning before it.
    """
    used: set[str] = set()
    effort = fields.get("reasoning_effort")
    if effort and (with_effort := options.with_effort(effort)) is not None:
        options = with_effort
        used.add("reasoning_effort")
    wanted: dict[str, Any] = {}
    if getattr(options, "current_date", today) is None:
        wanted["current_date"] = today
    template = fields.get("chat_template_kwargs")
    flags = template if isinstance(template, Mapping) else {}
    thinks = flags.get("enable_thinking", flags.get("thinking"))
    if hasattr(options, "thinking"):
        if speaks or thinks is False:
            wanted["thinking"] = "off"
        elif thinks is True and options.thinking == "off":
            wanted["thinking"] = "open"
        if isinstance(thinks, bool) and flags.keys() <= {"enable_thinking", "thinking"}:
            used.add("chat_template_kwargs")
    return replace(options, **wanted), frozenset(used)


# Fields with which vLLM and SGLang continue the last message. llama.cpp and Ollama do so without any.
_CONTINUES: Final[dict[str, Any]] = {"continue_final_message": True, "add_generation_prompt": False}
# Placeholder for any reasoning, to find the text that follows it.
_THOUGHT: Final = "thought\N{BLACK SQUARE}"


def _with_prefill(prompt: Prompt, dialect: Dialect, begun: str) -> Prompt:
    """A prompt that ends in the beginning of its answer, as the format writes text."""
    message = Message("assistant", (TextPart(begun),))
    thinks = prompt.start == "reasoning"  # then the text follows the end of it
    written = dialect.write(AssistantTurn(reasoning=_THOUGHT if thinks else None, message=message))
    lead = written.partition(_THOUGHT)[2] if thinks else written
    lead = lead[: lead.index(begun)].removeprefix(prompt.prefill) if begun in lead else ""
    pieces = [*prompt.pieces, *([Control(lead)] if lead else []), Text(begun)]
    return replace(prompt, pieces=tuple(pieces), prefill=prompt.prefill + lead + begun)
