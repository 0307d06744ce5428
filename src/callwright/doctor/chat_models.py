"""Which of a server's models can chat: by the server's declaration, else by the name."""

import re
from collections.abc import Mapping
from typing import Any, Final

# Declared by LM Studio (`type`), Together (`type`), Ollama (`capabilities`), llama.cpp (`capabilities`).
_CHATS: Final = frozenset(("llm", "vlm", "chat", "completion", "tools", "language", "multimodal"))
# Names of families and uses that do not chat, as whole words of a model's name.
_OTHER_USES: Final = re.compile(
    r"(?<![a-z0-9])(?:"
    r"[a-z0-9]*embed(?:s|der|ding|dings)?|[a-z0-9]*rerank(?:er|ing)?|colbert\w*|cross-encoder|sentence-transformers|"
    r"bge|e5|gte|minilm|mpnet|arctic-embed|splade|retriever|ada-00[12]|"
    r"d?whisper|parakeet|canary|wav2vec2?|asr|stt|transcribe|transcription|"
    r"tts|kokoro|bark|xtts|speecht5|orpheus|musicgen|"
    r"dall-e|stable-diffusion|sdxl|sd3|flux|clip|siglip|imagen|sora|gpt-image|"
    r"moderation"
    r")(?![a-z])",
    re.IGNORECASE,
)


def can_chat(name: str, declared: Mapping[str, Any] | None = None) -> bool:
    """Whether a model can be asked to chat. `declared` is the server's entry for it, if there is one."""
    uses = {use.lower() for use in _uses(declared or {})}
    if uses:
        return bool(uses & _CHATS)
    return _OTHER_USES.search(name) is None


def _uses(declared: Mapping[str, Any]) -> list[str]:
    """The uses that the server declares for the model."""
    found = [declared.get("type"), *_texts(declared.get("capabilities"))]
    return [use for use in found if isinstance(use, str) and use != "model"]


def _texts(value: object) -> list[object]:
    return value if isinstance(value, list) else []
