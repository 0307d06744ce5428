"""Context edits of a Messages request: they remove results of old calls, and old reasoning, from the prompt.

Source: platform.claude.com/docs (context editing), November 2026. Tokens are counted as `estimated_tokens` does.
"""

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

import msgspec
from msgspec import Struct

from callwright.conversation import Call, CallOutput, FunctionTool, Item, Message, Reasoning, TextPart
from callwright.errors import RequestError
from callwright.openai_format.errors import type_error
from callwright.openai_format.tool_names import ToolNames
from callwright.wire.token_estimate import estimated_tokens

_CLEARED: Final = "[Old tool result content cleared]"
_TOOL_USES: Final = "clear_tool_uses_"
_THINKING: Final = "clear_thinking_"
_DEFAULT_TRIGGER: Final = 100_000
_DEFAULT_KEEP: Final = 3
_DEFAULT_TURNS: Final = 1


class _Amount(Struct):
    type: str
    value: int


class _ClearToolUses(Struct):
    type: str
    trigger: _Amount | None = None
    keep: _Amount | None = None
    clear_at_least: _Amount | None = None
    exclude_tools: list[str] | None = None
    clear_tool_inputs: bool | list[str] | None = None


class AppliedEdit(Struct):
    """The effect of an edit, as reported in the answer."""

    type: str
    cleared_tool_uses: int
    cleared_input_tokens: int


def clears_thinking(edits: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one of the edits removes reasoning from the prompt."""
    return any(str(edit.get("type")).startswith(_THINKING) and not _is_all(edit.get("keep")) for edit in edits)


def apply_edits(
    items: Sequence[Item], edits: Sequence[Mapping[str, Any]], names: ToolNames, tools: Sequence[FunctionTool]
) -> tuple[tuple[Item, ...], list[AppliedEdit], set[str]]:
    """The edited items, the edits applied, and the types of unknown edits. Raises `RequestError`."""
    kept = tuple(items)
    applied: list[AppliedEdit] = []
    unknown: set[str] = set()
    for number, given in enumerate(edits):
        kind = str(given.get("type"))
        if kind.startswith(_TOOL_USES):
            try:
                edit = msgspec.convert(given, _ClearToolUses)
            except msgspec.ValidationError as error:
                raise type_error(error, f"context_management.edits[{number}]", given) from error
            kept, done = _without_results(kept, edit, names, estimated_tokens(kept, tools))
            applied += [done] if done is not None else []
        elif kind.startswith(_THINKING):
            kept = _without_thinking(kept, given.get("keep"))
        else:
            unknown.add(kind)
    return kept, applied, unknown


def _without_results(
    items: tuple[Item, ...], edit: _ClearToolUses, names: ToolNames, tokens: int
) -> tuple[tuple[Item, ...], AppliedEdit | None]:
    """The items with the results of old calls left out, if there is enough to be gained."""
    calls = {item.id: item for item in items if isinstance(item, Call)}
    trigger = edit.trigger or _Amount("input_tokens", _DEFAULT_TRIGGER)
    if (len(calls) if trigger.type == "tool_uses" else tokens) <= trigger.value:
        return items, None
    answered = [n for n, item in enumerate(items) if isinstance(item, CallOutput)]
    keep = edit.keep.value if edit.keep is not None else _DEFAULT_KEEP
    old = answered[: len(answered) - keep] if keep else answered
    excluded = {names.flat(name) for name in edit.exclude_tools or ()}
    edited, cleared = _cleared(items, old, calls, excluded)
    inputs = edit.clear_tool_inputs
    if inputs:
        _clear_inputs(edited, cleared, None if inputs is True else {names.flat(name) for name in inputs})
    gained = estimated_tokens(items) - estimated_tokens(edited)
    least = edit.clear_at_least.value if edit.clear_at_least is not None else 1
    if not cleared or gained < least:
        return items, None
    return tuple(edited), AppliedEdit(edit.type, len(cleared), gained)


def _cleared(
    items: Sequence[Item], old: Sequence[int], calls: Mapping[str, Call], excluded: Set[str]
) -> tuple[list[Item], set[str]]:
    """The items with the results cleared that have these numbers, and the ids of their calls."""
    edited = list(items)
    cleared: set[str] = set()
    for number in old:
        item = items[number]
        assert isinstance(item, CallOutput)
        call = calls.get(item.call_id)
        if (call is not None and call.name in excluded) or item.text == _CLEARED:
            continue
        edited[number] = CallOutput(item.call_id, (TextPart(_CLEARED),))
        cleared.add(item.call_id)
    return edited, cleared


def _clear_inputs(items: list[Item], ids: Set[str], names: Set[str] | None) -> None:
    """Clear the arguments of these calls, of the tools of these names only; None = of all."""
    for number, item in enumerate(items):
        if isinstance(item, Call) and item.id in ids and (names is None or item.name in names):
            items[number] = msgspec.structs.replace(item, arguments="{}")


def _without_thinking(items: tuple[Item, ...], keep: object) -> tuple[Item, ...]:
    """The items with reasoning only in the last `keep` turns of the assistant."""
    if _is_all(keep):
        return items
    turns = _DEFAULT_TURNS if keep is None else keep.get("value") if isinstance(keep, Mapping) else None
    if not isinstance(turns, int):
        raise RequestError(
            'Invalid \'context_management.edits\': expected \'all\' or {"type": "thinking_turns", "value": N} for '
            "'keep' of clear_thinking.",
            param="context_management.edits",
            code="invalid_value",
        )
    left = turns
    edited: list[Item] = []
    in_turn = False
    for item in reversed(items):
        is_users = isinstance(item, CallOutput) or (isinstance(item, Message) and item.role != "assistant")
        if is_users and in_turn:
            left -= 1
        in_turn = not is_users
        if not (isinstance(item, Reasoning) and left <= 0):
            edited.append(item)
    return tuple(reversed(edited))


def _is_all(keep: object) -> bool:
    return keep == "all" or (isinstance(keep, Mapping) and keep.get("type") == "all")
