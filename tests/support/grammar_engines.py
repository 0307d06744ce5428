"""The engines that take grammars, as judges of them: llguidance, and xgrammar where it is installed."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from random import Random
from types import ModuleType
from typing import Any, Final

import pytest
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

_FREE: Final = 150  # so many bytes may come next: it is free text
_SOFT_TOKENS: Final = 200
_HARD_TOKENS: Final = 2_500
# Behind a backtick a call is code, and 4e99999 is no number in Python.
_AVOIDED: Final = b"`"
_AVOIDED_IN_NUMBERS: Final = b"eE`"


class Llguidance:
    """A Lark grammar over the 256 bytes and these control tokens."""

    def __init__(self, grammar: str, controls: Sequence[str] = ()) -> None:
        self._controls = tuple(controls)
        self._end = 256 + len(self._controls)
        vocabulary = LLTokenizer(TokenizerWrapper(_Vocabulary(self._controls)), slices=[])
        self._base = LLMatcher(vocabulary, grammar, log_level=0)
        assert not self._base.is_error(), f"{self._base.get_error()}\n{grammar}"

    def accepts(self, text: str) -> bool:
        """Whether a whole text, in which controls are control tokens, is of the grammar."""
        reading = self._base.deep_copy()
        ids = self._ids(text)
        return reading.try_consume_tokens(ids) == len(ids) and reading.is_accepting()

    def sample(self, seed: int, closers: Sequence[str] = ()) -> str | None:
        """A text of the grammar; None when the walk was caught in what it cannot end. `closers` are texts that a walk
        hardly finds by itself: it tries them where anything may stand.
        """
        reading, mode_selector = self._base.deep_copy(), Random(seed)
        ids: list[int] = []
        while len(ids) < _HARD_TOKENS:
            if reading.is_accepting() and (
                reading.is_stopped() or len(ids) > _SOFT_TOKENS or mode_selector.random() < 0.5
            ):
                return self._text(ids)
            bias = reading.compute_logit_bias()
            allowed = [token for token in range(self._end) if bias[token]]
            if not allowed:
                return self._text(ids) if reading.is_accepting() else None
            if closers and len(allowed) > _FREE and mode_selector.random() < 0.2:
                ids += self._closed(reading, mode_selector.choice(closers))
                continue
            closing = [token for token in allowed if token > 255 or token in b'"}],\n<']
            late = len(ids) > _SOFT_TOKENS or mode_selector.random() < 0.2
            avoided = _AVOIDED_IN_NUMBERS if ids and ids[-1] in tuple(b"0123456789.") else _AVOIDED
            plain = [token for token in allowed if token > 255 or (32 <= token < 127 and token not in avoided)]
            token = mode_selector.choice(closing if closing and late else plain or allowed)
            assert reading.try_consume_tokens([token]) == 1
            ids.append(token)
        return None

    def _closed(self, reading: LLMatcher, closer: str) -> list[int]:
        ids = self._ids(closer)
        taken: int = reading.try_consume_tokens(ids)
        return ids[:taken]

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = []
        while text:
            control = next((control for control in self._controls if text.startswith(control)), "")
            ids += [256 + self._controls.index(control)] if control else text[0].encode()
            text = text[len(control) or 1 :]
        return ids

    def _text(self, ids: Iterable[int]) -> str:
        pieces = (self._controls[i - 256].encode() if i > 255 else bytes([i]) for i in ids)
        return b"".join(pieces).decode()


class _Vocabulary:
    def __init__(self, controls: Sequence[str]) -> None:
        self.tokens = [bytes([byte]) for byte in range(256)] + [control.encode() for control in controls] + [b"<eos>"]
        self.special_token_ids = list(range(256, len(self.tokens)))
        self.eos_token_id = len(self.tokens) - 1
        self.bos_token_id = None

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


def xgrammar_judge() -> Callable[[str], Callable[[str], bool]]:
    """Makes of a structural tag, or of GBNF, which it reads, too, what says whether a text is of it. Skips where
    xgrammar is not installed.

    The package asks for torch, and needs nothing of it to judge a text.
    """
    try:
        with _without_torch():
            xgrammar: Any = importlib.import_module("xgrammar")
    except ImportError:
        pytest.skip("xgrammar is not installed: pip install --no-deps xgrammar apache-tvm-ffi numpy")
    tokens = [bytes([byte]) for byte in range(256)] + [b"<eos>"]
    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, stop_token_ids=[256])
    compiler = xgrammar.GrammarCompiler(info, max_threads=1)

    def judge(grammar: str) -> Callable[[str], bool]:
        is_tag = grammar.startswith("{")
        built = compiler.compile_structural_tag(grammar) if is_tag else compiler.compile_grammar(grammar)

        def accepts(text: str) -> bool:
            reading = xgrammar.GrammarMatcher(built, terminate_without_stop_token=True)
            return bool(reading.accept_string(text) and reading.is_completed())

        return accepts

    return judge


class _Anything(type):
    """A class that has every attribute, and is what it is called with."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _anything(name)

    def __call__(cls, *given: Any, **named: Any) -> Any:
        return given[0] if given and callable(given[0]) else cls


def _anything(name: str) -> Any:
    return _Anything(name, (), {})


class _Nothing(ModuleType):
    """Stands in for a package that is imported and not used."""

    __version__ = "2.9.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _anything(name)


@contextmanager
def _without_torch() -> Iterator[None]:
    missing = [name for name in ("torch", "transformers", "triton") if importlib.util.find_spec(name) is None]
    for name in missing:
        sys.modules[name] = stand_in = _Nothing(name)
        stand_in.__spec__ = ModuleSpec(name, None)
    try:
        yield
    finally:
        for name in missing:
            del sys.modules[name]
