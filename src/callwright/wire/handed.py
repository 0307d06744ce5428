"""Endpoints whose requests are forwarded to the model's server: the checks of a request, and the forwarded fields.

Only the types of the essential fields are validated here. All other fields are forwarded unchanged if they are known,
or if only trusted clients use the gateway.

Sources: OpenAI's API reference; docs.vllm.ai (OpenAI-compatible server, pooling models), docs.sglang.io (OpenAI API,
native APIs), README of llama.cpp's server, docs.ollama.com/api/openai-compatibility, docs.cohere.com/reference/rerank,
jina.ai/reranker; November 2026.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from callwright.wire.pass_rules import SAMPLING_FIELDS

_Count: TypeAlias = Annotated[int, Meta(ge=1)]
_Number: TypeAlias = Annotated[int, Meta(ge=0)]


class CompletionStreamOptions(Struct):
    include_usage: bool | None = None


class HandedBody(Struct):
    """The fields common to requests to all of these endpoints."""

    model: str


class CompletionRequestBody(HandedBody):
    prompt: str | list[Any]
    suffix: str | None = None
    stream: bool | None = None
    stream_options: CompletionStreamOptions | None = None
    n: _Count | None = None
    best_of: _Count | None = None
    echo: bool | None = None
    stop: str | list[str] | None = None
    max_tokens: _Number | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None


class EmbeddingsRequestBody(HandedBody):
    input: str | list[Any]
    encoding_format: str | None = None
    dimensions: _Count | None = None


class RerankRequestBody(HandedBody):
    query: str | dict[str, Any]
    documents: list[str | dict[str, Any]] | dict[str, Any]
    top_n: _Number | None = None
    return_documents: bool | None = None


class ScoreRequestBody(HandedBody):
    text_1: str | list[Any] | dict[str, Any] | None = None
    text_2: str | list[Any] | dict[str, Any] | None = None


class HandedEndpoint(Struct, frozen=True):
    """An endpoint. `path`: the server's, below its base URL; `text`: the field with the input; `known`: the fields
    forwarded for untrusted clients; `operation` is its name in OpenTelemetry.
    """

    path: str
    body: type[HandedBody]
    text: str
    known: frozenset[str]
    operation: Literal["text_completion", "embeddings", "rerank", "score"]


COMPLETIONS: Final = HandedEndpoint(
    "/completions",
    CompletionRequestBody,
    "prompt",
    SAMPLING_FIELDS
    | {
        # OpenAI
        *("best_of", "echo", "frequency_penalty", "logit_bias", "logprobs", "max_tokens", "n", "presence_penalty"),
        *("prompt", "seed", "stop", "suffix", "temperature", "top_p", "user"),
        # vLLM, SGLang
        *("add_special_tokens", "prompt_logprobs", "return_token_ids", "truncate_prompt_tokens"),
        # llama.cpp
        *("cache_prompt", "n_probs", "preserved_tokens"),
    },
    "text_completion",
)
EMBEDDINGS: Final = HandedEndpoint(
    "/embeddings",
    EmbeddingsRequestBody,
    "input",
    frozenset(
        {
            # OpenAI
            *("dimensions", "encoding_format", "input", "user"),
            # vLLM, llama.cpp (embd_normalize), Ollama (truncate), Jina and Cohere (the purpose of the vector)
            *("add_special_tokens", "embd_dtype", "embd_normalize", "endianness", "input_type", "normalize", "task"),
            *("truncate", "truncate_prompt_tokens", "truncation_side", "use_activation"),
        }
    ),
    "embeddings",
)
RERANK: Final = HandedEndpoint(
    "/rerank",
    RerankRequestBody,
    "documents",
    frozenset(
        {
            # Cohere, Jina
            *("documents", "max_chunks_per_doc", "max_tokens_per_doc", "query", "rank_fields", "return_documents"),
            *("top_n", "truncation"),
            # vLLM, SGLang (instruct)
            *("instruct", "truncate_prompt_tokens", "truncation_side", "use_activation", "user"),
        }
    ),
    "rerank",
)
SCORE: Final = HandedEndpoint(
    "/score",
    ScoreRequestBody,
    "text_2",
    frozenset(
        {
            # vLLM
            *("data_1", "data_2", "documents", "queries", "text_1", "text_2"),
            *("truncate_prompt_tokens", "truncation_side", "use_activation", "user"),
            # SGLang
            *("apply_softmax", "item_first", "items", "label_token_ids", "query"),
        }
    ),
    "score",
)
