"""Mistral's own encoder, `mistral-common`, as an oracle: the prompts of each of its versions, as text."""

import json
import re
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

__all__ = ["VERSIONS", "RefusedError", "prompt_of"]

mistral_common = pytest.importorskip("mistral_common", reason="mistral-common is not installed")
pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")

from mistral_common.exceptions import MistralCommonException  # noqa: E402
from mistral_common.protocol.instruct.request import ChatCompletionRequest  # noqa: E402
from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy, SpecialTokens  # noqa: E402
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer  # noqa: E402

# By what they are called: the dialect and the options that follow them.
VERSIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "v3, SentencePiece": ("mistral_v3", {"spaces": True}),
    "v3, Tekken": ("mistral_v3", {}),
    "v7, SentencePiece": ("mistral_v3", {"flavour": "v7", "spaces": True}),
    "v7, Tekken": ("mistral_v3", {"flavour": "v7"}),
    "v11": ("mistral_v11", {}),
    "v13": ("mistral_v11", {"flavour": "v13"}),
    "v15": ("mistral_v11", {"flavour": "v15"}),
}
_SETTINGS = {"reasoning_effort": {"type": "enum", "values": ["none", "high"], "default": "none", "accepts_none": True}}
_BYTES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")


class RefusedError(Exception):
    """The encoder does not take this conversation."""


def prompt_of(version: str, messages: list[Any], tools: list[Any] | None, effort: str | None = None) -> str:
    """What the encoder makes of a conversation. Raises `RefusedError`."""
    given: dict[str, Any] = {} if effort is None else {"reasoning_effort": effort}
    try:
        request = ChatCompletionRequest.from_openai(messages=messages, tools=tools, **given)
        tokenizer = _tokenizer(version)
        tokens = tokenizer.encode_chat_completion(request).tokens
    except (MistralCommonException, ValueError) as error:
        raise RefusedError(str(error)) from error
    text = tokenizer.instruct_tokenizer.decode(tokens, special_token_policy=SpecialTokenPolicy.KEEP)
    return _BYTES.sub(_decoded, text).replace("▁", " ") if "SentencePiece" in version else text


def _decoded(found: re.Match[str]) -> str:
    return bytes(int(byte, 16) for byte in re.findall(r"0x(..)", found[0])).decode()


@cache
def _tokenizer(version: str) -> MistralTokenizer[Any, Any, Any, Any, Any]:
    if version.startswith("v3"):
        return MistralTokenizer.v3(is_tekken="Tekken" in version)
    if version == "v7, SentencePiece":
        return MistralTokenizer.v7()
    return _tekken(version.partition(",")[0])


def _tekken(version: str) -> MistralTokenizer[Any, Any, Any, Any, Any]:
    """The vocabulary that comes with the package, told to be of another version."""
    data = json.loads(next(Path(mistral_common.__file__).parent.glob("data/tekken_240911.json")).read_bytes())
    data["config"]["version"] = version
    names = [token.value for token in SpecialTokens]
    names += [f"<SPECIAL_{number}>" for number in range(len(names), data["config"]["default_num_special_tokens"])]
    data["special_tokens"] = [{"rank": at, "token_str": name, "is_control": True} for at, name in enumerate(names)]
    if version == "v15":
        data["model_settings_builder"] = _SETTINGS
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what else a file of this version would hold
        path = Path(folder) / "tekken.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        return MistralTokenizer.from_file(str(path))
