"""A GGUF file with 116,000 random weights, for llama.cpp: only a grammar makes sense of what it writes.

    scripts/tiny_gguf FILE.gguf [--dialect NAME] [--seed N]

Its vocabulary is the 256 bytes and the dialect's control tokens; its chat template is one that llama.cpp reads calls by
for `hermes`, `qwen3_coder` and `harmony`, else the marks by which the dialect is found. The file is GGUF 3:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

import argparse
import struct
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from callwright.conversation import Conversation, Message, TextPart
from callwright.dialects.base import dialect_names, get_dialect

WIDTH: Final = 64
HIDDEN: Final = 128
BLOCKS: Final = 2
CONTEXT_TOKENS: Final = 8192
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
# Tokens like these stand for nothing in the text; the other marks, such as <tool_call>, do.
_SILENT: Final = ("<|", "<s>", "</s>", "[")
_CHATML: Final = """{%- macro turn(role, text) -%}<|im_start|>{{ role }}\n{{ text }}<|im_end|>\n{%- endmacro -%}
{%- if tools %}<|im_start|>system\n# Tools\n<tools>{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}\n</tools>
CALLS<|im_end|>\n{% endif %}
{%- for message in messages %}
{%- if message.role == "assistant" and message.tool_calls %}<|im_start|>assistant
{%- for tool_call in message.tool_calls %}ONE{% endfor %}<|im_end|>\n
{%- elif message.role == "tool" %}{{ turn("user", "<tool_response>\n" ~ message.content ~ "\n</tool_response>") }}\n
{%- else %}{{ turn(message.role, message.content) }}\n{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"""
_JSON_CALL: Final = """
<tool_call>
{"name": "{{ tool_call.function.name }}", "arguments": {{ tool_call.function.arguments | tojson }}}
</tool_call>"""
_XML_CALL: Final = """
<tool_call>
<function={{ tool_call.function.name }}>
{%- for name, value in tool_call.function.arguments | items %}
<parameter={{ name }}>
{{ value if value is string else value | tojson }}
</parameter>
{%- endfor %}
</function>
</tool_call>"""
_HARMONY: Final = """<|start|>system<|message|>You are a model.<|end|>
{%- if tools %}<|start|>developer<|message|># Tools\n## functions\nnamespace functions {
{%- for tool in tools %}\ntype {{ tool.function.name }} = (_: {{ tool.function.parameters | tojson }}) => any;
{%- endfor %}\n}<|end|>{% endif %}
{%- for message in messages %}
{%- if message.role == "assistant" and message.tool_calls %}{% for tool_call in message.tool_calls -%}
<|start|>assistant to=functions.{{ tool_call.function.name }}<|channel|>commentary json<|message|>
{{- tool_call.function.arguments | tojson }}<|call|>{% endfor %}
{%- elif message.role == "assistant" %}<|start|>assistant<|channel|>final<|message|>{{ message.content }}<|end|>
{%- elif message.role == "tool" -%}
<|start|>functions.tool to=assistant<|channel|>commentary<|message|>{{ message.content }}<|end|>
{%- else %}<|start|>{{ message.role }}<|message|>{{ message.content }}<|end|>{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|start|>assistant{% endif %}"""


def main() -> None:
    """Write the file that the command line asks for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("path", type=Path, help="the file to write")
    options.add_argument("--dialect", default="hermes", choices=dialect_names(), metavar="NAME", help="default: hermes")
    options.add_argument("--seed", type=int, default=7, help="of the weights")
    given = options.parse_args()
    write_model(given.path, given.dialect, given.seed)


def chat_template(dialect: str) -> str:
    """A chat template of which the dialect is known."""
    if dialect == "hermes":
        told = 'Call as {"name": …, "arguments": …} in <tool_call></tool_call>.'
        return _CHATML.replace("CALLS", told).replace("ONE", _JSON_CALL)
    if dialect == "qwen3_coder":
        told = "Call as <function=name> with <parameter=name> in <tool_call></tool_call>."
        return _CHATML.replace("CALLS", told).replace("ONE", _XML_CALL)
    if dialect == "harmony":
        return _HARMONY
    marks: Sequence[str] = getattr(get_dialect(dialect), "template", ())
    return "{#" + (marks[0].replace(" + ", " ") if marks else "") + "#}{{ messages[0].content }}"


def write_model(path: Path, dialect: str = "hermes", seed: int = 7, template: str | None = None) -> None:
    """Write the file. `template`: another chat template; an empty one is left out."""
    marks = _marks(dialect)
    end = (*get_dialect(dialect).stops, marks[-1])[0]
    tokens = [*_alphabet(), "Ġt", *marks]
    types = [_NORMAL] * 257 + [_CONTROL if mark.startswith(_SILENT) else _USER_DEFINED for mark in marks]
    values: dict[str, tuple[int, Any]] = {
        "general.architecture": (_STRING, "llama"),
        "general.name": (_STRING, f"tiny-{dialect}"),
        "general.file_type": (_UINT32, 0),
        "llama.context_length": (_UINT32, CONTEXT_TOKENS),
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
        "tokenizer.ggml.bos_token_id": (_UINT32, tokens.index(end)),
        "tokenizer.ggml.eos_token_id": (_UINT32, tokens.index(end)),
        "tokenizer.ggml.padding_token_id": (_UINT32, tokens.index(end)),
        "tokenizer.ggml.add_bos_token": (_BOOL, False),
    }
    if shown := chat_template(dialect) if template is None else template:
        values["tokenizer.chat_template"] = (_STRING, shown)
    tensors = dict(_tensors(len(tokens), Random(seed)))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    head += b"".join(
        _text(key) + struct.pack("<I", kind) + _value(kind, value) for key, (kind, value) in values.items()
    )
    offset = 0
    for name, (shape, weights) in tensors.items():
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset)
        offset += len(weights)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + b"".join(weights for _, weights in tensors.values()))


def _tensors(tokens: int, mode_selector: Random) -> Iterable[tuple[str, tuple[tuple[int, ...], bytes]]]:
    def noise(name: str, rows: int, columns: int, scale: float) -> tuple[str, tuple[tuple[int, ...], bytes]]:
        deviation = scale / columns**0.5
        weights = array("f", (mode_selector.gauss(0.0, deviation) for _ in range(rows * columns)))
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


def _marks(name: str) -> Sequence[str]:
    """The control tokens of a dialect, as its prompts name them."""
    dialect = get_dialect(name)
    asked = Conversation((Message("user", (TextPart("?"),)),))
    return sorted({*dialect.render(asked, dialect.options()).marks, *dialect.stops})


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


if __name__ == "__main__":
    main()
