"""A model of 116,000 random weights for llama.cpp, and its server: only a grammar makes sense of what it writes.

The file is GGUF 3: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

import json
import socket
import struct
import urllib.error
import urllib.request
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

WIDTH: Final = 64
HIDDEN: Final = 128
BLOCKS: Final = 2
_CONTROLS: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_MARKERS: Final = ("<tool_call>", "</tool_call>", "<think>", "</think>")
# A chat template with tools, in Hermes' form, so that the server has a parser of its own for the answers.
HERMES: Final = """\
{%- if tools %}<|im_start|>system
<tools>
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}</tools>
<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}
{%- for tool_call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ tool_call.function.name }}", "arguments": {{ tool_call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9


class TinyLlama:
    """llama.cpp's server with that model, in this process; it serves until the process ends. Its own chat template is
    plain.
    """

    def __init__(self, folder: Path, chat_template: str | None = None) -> None:
        xllamacpp: Any = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
        write_model(folder / "tiny.gguf")
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(folder / "tiny.gguf")
        parameters.port = _free_port()
        parameters.n_ctx = 8192
        parameters.n_parallel = 1
        parameters.warmup = False
        parameters.cpuparams.n_threads = 1
        if chat_template is not None:
            parameters.use_jinja = True
            parameters.chat_template = chat_template
        self._server = xllamacpp.Server(parameters)
        self.url = f"{self._server.listening_address}/v1"

    def complete(self, **body: Any) -> Mapping[str, Any]:
        """The answer of `/completion`; an error is its text under `error`."""
        url = self.url.removesuffix("/v1") + "/completion"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request) as response:
                answer: Mapping[str, Any] = json.load(response)
                return answer
        except urllib.error.HTTPError as error:
            with error:
                return {"error": error.read().decode()}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def write_model(path: Path) -> None:
    """Write the file."""
    tokens = [*_alphabet(), "Ġt", *_CONTROLS, *_MARKERS]
    types = [_NORMAL] * 257 + [_CONTROL] * len(_CONTROLS) + [_USER_DEFINED] * len(_MARKERS)
    values: dict[str, tuple[int, Any]] = {
        "general.architecture": (_STRING, "llama"),
        "general.name": (_STRING, "tiny"),
        "general.file_type": (_UINT32, 0),
        "llama.context_length": (_UINT32, 8192),
        "llama.embedding_length": (_UINT32, WIDTH),
        "llama.block_count": (_UINT32, BLOCKS),
        "llama.feed_forward_length": (_UINT32, HIDDEN),
        "llama.attention.head_count": (_UINT32, 4),
        "llama.attention.head_count_kv": (_UINT32, 4),
        "llama.attention.layer_norm_rms_epsilon": (_FLOAT32, 1e-5),
        "llama.rope.dimension_count": (_UINT32, 16),
        "llama.rope.freq_base": (_FLOAT32, 10_000.0),
        "llama.vocab_size": (_UINT32, len(tokens)),
        "tokenizer.ggml.model": (_STRING, "gpt2"),
        "tokenizer.ggml.pre": (_STRING, "gpt-2"),
        "tokenizer.ggml.tokens": (_ARRAY, (_STRING, tokens)),
        "tokenizer.ggml.token_type": (_ARRAY, (_INT32, types)),
        "tokenizer.ggml.merges": (_ARRAY, (_STRING, ["Ġ t"])),
        "tokenizer.ggml.bos_token_id": (_UINT32, 257),
        "tokenizer.ggml.eos_token_id": (_UINT32, tokens.index("<|im_end|>")),
        "tokenizer.ggml.padding_token_id": (_UINT32, 257),
        "tokenizer.ggml.add_bos_token": (_BOOL, False),
    }
    tensors = dict(_tensors(len(tokens)))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    head += b"".join(
        _text(key) + struct.pack("<I", kind) + _value(kind, value) for key, (kind, value) in values.items()
    )
    offset = 0
    for name, (shape, weights) in tensors.items():
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset)
        offset += len(weights)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + b"".join(weights for _, weights in tensors.values()))


def _tensors(tokens: int) -> Iterable[tuple[str, tuple[tuple[int, ...], bytes]]]:
    chooser = Random(7)

    def noise(name: str, rows: int, columns: int, scale: float) -> tuple[str, tuple[tuple[int, ...], bytes]]:
        deviation = scale / columns**0.5
        weights = array("f", (chooser.gauss(0.0, deviation) for _ in range(rows * columns)))
        return f"{name}.weight", ((columns, rows), weights.tobytes())

    def ones(name: str) -> tuple[str, tuple[tuple[int, ...], bytes]]:
        return f"{name}.weight", ((WIDTH,), array("f", [1.0] * WIDTH).tobytes())

    yield noise("token_embd", tokens, WIDTH, 4)
    yield ones("output_norm")
    yield noise("output", tokens, WIDTH, 2)
    for block in (f"blk.{number}" for number in range(BLOCKS)):
        yield ones(f"{block}.attn_norm")
        yield ones(f"{block}.ffn_norm")
        for part in ("q", "k", "v", "output"):
            yield noise(f"{block}.attn_{part}", WIDTH, WIDTH, 0.5)
        yield noise(f"{block}.ffn_gate", HIDDEN, WIDTH, 0.5)
        yield noise(f"{block}.ffn_up", HIDDEN, WIDTH, 0.5)
        yield noise(f"{block}.ffn_down", WIDTH, HIDDEN, 0.5)


def _alphabet() -> Sequence[str]:
    """The 256 bytes as GPT-2 writes them."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte) if byte in shown else chr(256 + hidden.index(byte)) for byte in range(256)]


def _value(kind: int, value: Any) -> bytes:
    if kind == _ARRAY:
        inner, items = value
        return struct.pack("<IQ", inner, len(items)) + b"".join(_value(inner, item) for item in items)
    if kind == _STRING:
        return _text(value)
    return struct.pack({_UINT32: "<I", _INT32: "<i", _FLOAT32: "<f", _BOOL: "<?"}[kind], value)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
