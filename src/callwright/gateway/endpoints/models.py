"""The models of a gateway: those that a key may use are found by name, listed and shown."""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from callwright.doctor.chat_models import can_chat
from callwright.errors import RequestError, UpstreamError, did_you_mean
from callwright.gateway.access.keys import Keys, caller
from callwright.gateway.config.config import ANY_MODEL
from callwright.gateway.http import FALLBACK_HEADER, json_response
from callwright.gateway.model_windows import ModelWindows
from callwright.gateway.request_context import current
from callwright.turn.model import AUTO, Model
from callwright.upstreams.completions import CHAT_ONLY
from callwright.wire.pass_rules import OPENAI_FIELDS
from callwright.wire.server import ModelArchitecture, ModelCard, ModelList, ModelMeta, Supported

log = logging.getLogger("callwright.gateway")
_MAX_SHOWN: Final = 100
# The parameters of a chat request that hold for each model, by OpenRouter's names, and those that any server takes.
_PARAMETERS: Final = ("tools", "tool_choice", "parallel_tool_calls", "response_format", "structured_outputs")
_COMMON: Final = OPENAI_FIELDS - CHAT_ONLY


class ModelsEndpoint:
    """`models` are those of the configuration, by name. `searches`: this gateway searches the web. `started`: when it
    was started, in seconds since the epoch.
    """

    def __init__(
        self, models: Mapping[str, Model], windows: ModelWindows, keys: Keys, *, searches: bool, started: int
    ) -> None:
        self._models = models
        self._windows = windows
        self._keys = keys
        self._searches = searches
        self._started = started

    def find(self, name: str) -> Model:
        """The model of this name, if the caller may use it, with those of its fallbacks that may answer the request.
        Raises `RequestError`.
        """
        allowed = caller().may_use(name)
        model = self._models.get(name) if allowed else None
        if model is None and allowed and (any_model := self._models.get(ANY_MODEL)) is not None:
            model = any_model.for_model(name)
        if model is None:
            known = list(filter(caller().may_use, self._models))
            or_not_yours = " or you do not have access to it" if self._keys else ""
            raise RequestError(
                f"The model '{name}' does not exist{or_not_yours}.{did_you_mean(name, known)} This gateway serves: "
                f"{', '.join(known) or 'nothing to this key'}.",
                param="model",
                code="model_not_found",
                status=404,
            )
        return _with_allowed_fallbacks(model) if model.fallbacks else model

    async def list(self, request: Request) -> Response:
        """The models that can be asked."""
        names = [name for name in self._models if name != ANY_MODEL]
        if (any_model := self._models.get(ANY_MODEL)) is not None:
            try:
                names += [name for name in await any_model.upstream.models() if name not in names]
            except UpstreamError as error:
                if not names:
                    raise
                log.info("the configured models only are listed: the upstream fails (%s)", error.fault)
                log.debug("the upstream says: %.500r", str(error))
        allowed = [name for name in names if caller().may_use(name)]
        windows = await self._windows.of(allowed)
        cards = [self._card(name, windows.get(name)) for name in allowed]
        first, last = (cards[0].id, cards[-1].id) if cards else (None, None)
        return json_response(ModelList(data=cards, first_id=first, last_id=last, web_search=self._searches))

    async def show(self, request: Request) -> Response:
        """A model that can be asked."""
        name = request.path_params["name"]
        self.find(name)
        return json_response(self._card(name, (await self._windows.of([name])).get(name)))

    def _card(self, name: str, window: int | None) -> ModelCard:
        model = self._models.get(name) or self._models[ANY_MODEL].for_model(name)
        reasons = _reasons(model)
        inputs = model.input_modalities or (("text",) if model.mode == "raw" else None)
        accepts = _COMMON if model.accepts is None else model.accepts
        fields, _ = model.passes.fields_passed(dict.fromkeys(accepts))
        more = [*["reasoning"] * bool(reasons), *["web_search_options"] * self._searches]
        card = ModelCard(
            id=name,
            created=self._started,
            display_name=name,
            created_at=datetime.fromtimestamp(self._started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            mode=model.mode if model.mode_selector is None else AUTO,
            dialect=model.dialect or UNSET,
            supported_parameters=[*_PARAMETERS, *more, *sorted(fields)] if can_chat(name) else (),
            capabilities=_capabilities(name, inputs, reasons=reasons),
        )
        if inputs is not None:
            card.architecture = ModelArchitecture(f"{'+'.join(inputs)}->text", inputs)
        if window is not None:
            card.max_model_len = card.context_length = card.context_window = card.max_input_tokens = window
            card.meta = ModelMeta(window, window)
        return card


def _reasons(model: Model) -> bool | None:
    """Whether a model can reason before its answer, by the options of its dialect; None if its server renders, or if
    the options leave it to the model.
    """
    if model.mode == "native" or model.mode_selector is not None:
        return None
    if getattr(model.options, "reasoning_effort", None) == "none":
        return False
    thinking = getattr(model.options, "thinking", None)
    if thinking is not None:
        return None if thinking == "model" else thinking != "off"
    return "reasoning_effort" in type(model.options).__struct_fields__


def _capabilities(
    name: str, inputs: Sequence[str] | None, *, reasons: bool | None
) -> Sequence[str] | Mapping[str, Supported]:
    """What a model can do, in the words of the client's API. Tools are offered to every model: see the modes."""
    sees, chats, context = None if inputs is None else "image" in inputs, can_chat(name), current()
    if context is not None and context.api == "anthropic":
        known = {"structured_outputs": True, "image_input": sees, "thinking": reasons} if chats else {}
        return {what: Supported(can) for what, can in known.items() if can is not None}
    if not chats:
        return ()
    return ["completion", "tools", "tool_use", *["vision"] * bool(sees), *["thinking"] * bool(reasons)]


def _with_allowed_fallbacks(model: Model) -> Model:
    """The model with the fallbacks that may answer this request: by its header and its key. Raises `RequestError`."""
    context, key = current(), caller()
    wish = context.fallback_wish if context is not None else None
    if wish is not None and wish != "none":
        raise RequestError(
            f"Invalid value for the header '{FALLBACK_HEADER}': expected 'none', got {wish[:_MAX_SHOWN]!r}. Leave the "
            "header out to let another model answer if this one fails.",
            code="invalid_value",
        )
    allowed: list[Model] = []
    if key.falls_back and wish is None:
        allowed = [other for other in model.fallbacks if key.may_use(other.name) and other.name != model.name]
    same = len(allowed) == len(model.fallbacks)
    return model if same else msgspec.structs.replace(model, fallbacks=tuple(allowed))
