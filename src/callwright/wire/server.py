"""A server's information about itself: its models, and its health."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

# The header of `/healthz` by which a gateway knows itself, and the variable that its processes have its value in.
INSTANCE_HEADER: Final = "x-callwright-instance"
INSTANCE_VARIABLE: Final = "CALLWRIGHT_INSTANCE"


class ModelMeta(Struct):
    """As llama.cpp has it."""

    n_ctx: int
    n_ctx_train: int


class ModelArchitecture(Struct):
    """As OpenRouter has it."""

    modality: str
    input_modalities: Sequence[str]
    output_modalities: Sequence[str] = ("text",)


class Supported(Struct):
    """Whether a model has a capability, as Anthropic writes it."""

    supported: bool


class ModelCard(Struct, kw_only=True):
    """A model that can be asked, for clients of OpenAI's API and of Anthropic's: it has the same time twice.

    The size of its context window in tokens, if known, is under each of the names that clients look for. Unknown
    things are left out: for a server that renders the prompts itself, whether the model reasons, and what its messages
    may contain.
    """

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "callwright"
    type: Literal["model"] = "model"
    display_name: str
    created_at: str
    max_model_len: int | UnsetType = UNSET  # as vLLM and SGLang have it
    context_length: int | UnsetType = UNSET  # as OpenRouter has it
    context_window: int | UnsetType = UNSET  # as Groq has it
    max_input_tokens: int | UnsetType = UNSET  # as Anthropic has it, and LiteLLM
    meta: ModelMeta | UnsetType = UNSET
    mode: str
    dialect: str | UnsetType = UNSET
    supported_parameters: Sequence[str]  # as OpenRouter has it
    architecture: ModelArchitecture | UnsetType = UNSET
    capabilities: Sequence[str] | Mapping[str, Supported]  # as Ollama and LM Studio have it, or as Anthropic has it


class ModelList(Struct, kw_only=True):
    """The models that can be asked. `web_search`: they can search the web, if a request asks for it."""

    object: Literal["list"] = "list"
    data: list[ModelCard]
    has_more: bool = False
    first_id: str | None = None
    last_id: str | None = None
    web_search: bool = False


Readiness: TypeAlias = Literal["ok", "draining", "store_unavailable"]


class Health(Struct, kw_only=True):
    """Whether requests are taken, and would be answered."""

    status: Readiness
    version: str
