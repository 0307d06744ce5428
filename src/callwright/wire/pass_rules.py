"""Filter the requests of untrusted clients: only known fields reach the model's server, and only media that it need
not fetch from an address of the client's choice.

A server takes many more fields than OpenAI's API has. Some replace its chat template, name files of its machine, or
compile a pattern, and each version brings others. So the rule is a list of what may pass. Knows no model and no HTTP.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import Struct

from callwright.conversation import CallOutput, Item, MediaPart, Message, Part
from callwright.wire.media_urls import check_media

# Chat Completions: fields forwarded unchanged. Fields that the gateway handles itself are in `CONSUMED`.
OPENAI_FIELDS: Final = frozenset(
    {
        *("frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata"),
        *("moderation", "prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_options"),
        *("prompt_cache_retention", "reasoning_effort", "safety_identifier", "seed", "service_tier", "stop", "store"),
        *("temperature", "top_logprobs", "top_p", "user", "verbosity"),
    }
)
# How tokens are drawn, when an answer ends, and how much is thought.
# Sources: docs.vllm.ai (sampling parameters), docs.sglang.io/basic_usage/sampling_params.html, README of
# llama.cpp's server, docs/openai.md of Ollama, lmstudio.ai/docs (OpenAI compatibility), November 2026.
SAMPLING_FIELDS: Final = frozenset(
    {
        # several servers
        *("chat_template_kwargs", "ignore_eos", "min_p", "min_tokens", "repeat_penalty", "repetition_penalty"),
        *("skip_special_tokens", "stop_token_ids", "top_k", "typical_p"),
        # vLLM
        *("allowed_token_ids", "bad_words", "include_reasoning", "include_stop_str_in_output", "length_penalty"),
        *("spaces_between_special_tokens", "thinking_token_budget"),
        # SGLang
        *("no_stop_trim", "separate_reasoning", "stream_reasoning"),
        # llama.cpp
        *("dry_allowed_length", "dry_base", "dry_multiplier", "dry_penalty_last_n", "dry_sequence_breakers"),
        *("dynatemp_exponent", "dynatemp_range", "min_keep", "mirostat", "mirostat_eta", "mirostat_tau", "n_predict"),
        *("reasoning_format", "repeat_last_n", "samplers", "top_n_sigma", "xtc_probability", "xtc_threshold"),
        # Ollama, and services with its or these words
        *("enable_thinking", "reasoning", "think", "thinking", "thinking_budget"),
    }
)
KNOWN_FIELDS: Final = OPENAI_FIELDS | SAMPLING_FIELDS

# The fields of parts other than text, by type.
_PART_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "image_url": frozenset({"url", "detail"}),
    "input_audio": frozenset({"data", "format"}),
    "file": frozenset({"file_data", "file_id", "filename"}),
}
# Fields of messages that servers know: the begin of an answer that is to be continued.
_MESSAGE_FIELDS: Final = frozenset({"partial", "prefix"})
_ANY: Final = "*"
_SHOWN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,63}")
_MAX_SHOWN: Final = 16


class PassRules(Struct, frozen=True, dict=True):
    """What one model's server gets. `only_known`: of the fields of a chat request, those that are known, and `fields`;
    `*` among these is any. `media_urls`: the schemes of media, None for any place.
    """

    only_known: bool = False
    fields: frozenset[str] = frozenset()
    media_urls: frozenset[str] | None = None

    def names(self, field: str) -> bool:
        """Whether a field that is not known passes because the configuration names it."""
        return field in self.fields or _ANY in self.fields

    def fields_passed(
        self, fields: Mapping[str, Any], known: Collection[str] = KNOWN_FIELDS
    ) -> tuple[dict[str, Any], frozenset[str]]:
        """The fields of a request that pass, and the names of the others. `known` are those of its endpoint, by default
        of chat.
        """
        if not self._limits:
            return dict(fields), frozenset()
        passed = {name: value for name, value in fields.items() if name in known or name in self.fields}
        return passed, frozenset(fields.keys() - passed.keys())

    @cached_property
    def _limits(self) -> bool:
        return self.only_known and _ANY not in self.fields

    def items_passed(self, items: Sequence[Item], *, flat: bool = False) -> tuple[tuple[Item, ...], frozenset[str]]:
        """The filtered items, and the names of the removed fields of messages and parts. Raises `RequestError` for
        media from a forbidden address.

        `flat`: the request has the form of the Responses API, for the paths in errors.
        """
        if not self._limits and self.media_urls is None:
            return tuple(items), frozenset()
        dropped: set[str] = set()
        passed = [item if _is_plain(item) else self._item(item, dropped, flat=flat) for item in items]
        return tuple(passed), frozenset(dropped)

    def _item(self, item: Item, dropped: set[str], *, flat: bool) -> Item:
        if isinstance(item, Message | CallOutput) and item.has_media:
            parts = tuple([self._part(part, dropped, flat=flat) for part in item.parts])
            item = msgspec.structs.replace(item, parts=parts)
        if self._limits and isinstance(item, Message) and item.extra:
            extra = {name: value for name, value in item.extra.items() if name in _MESSAGE_FIELDS | self.fields}
            dropped |= item.extra.keys() - extra.keys()
            item = msgspec.structs.replace(item, extra=extra)
        return item

    def _part(self, part: Part, dropped: set[str], *, flat: bool) -> Part:
        if not isinstance(part, MediaPart):
            return part
        if self.media_urls is not None:
            check_media(part, self.media_urls, flat=flat)
        if not self._limits:
            return part
        value = _known_part(part.value, self.fields, dropped)
        return part if value == part.value else MediaPart(value, part.param)


def _is_plain(item: Item) -> bool:
    """Whether there is nothing in an item but text and what each item of its kind has."""
    if isinstance(item, Message):
        return not (item.extra or item.has_media)
    return not (isinstance(item, CallOutput) and item.has_media)


def _known_part(value: Mapping[str, Any], more: Collection[str], dropped: set[str]) -> dict[str, Any]:
    """A part with the fields that are its type's: a server may read others, whatever the type."""
    kind = value.get("type")
    known: dict[str, Any] = {}
    for name, inner in value.items():
        if name not in ("type", kind) and name not in more:
            dropped.add(name)
        elif name == kind and isinstance(inner, Mapping):
            fields = _PART_FIELDS.get(name, frozenset())
            known[name] = {key: it for key, it in inner.items() if key in fields or key in more}
            dropped |= inner.keys() - known[name].keys()
        else:
            known[name] = inner
    return known


def told_dropped(names: Collection[str]) -> str:
    """Names of fields for a header: the plain words among them, up to a limit, and the number of the others."""
    shown = sorted(filter(_SHOWN.fullmatch, names))[:_MAX_SHOWN]
    others = len(names) - len(shown)
    return ", ".join([*shown, *([f"and {others} more" if shown else f"{others} with odd names"] if others else [])])
