"""How byte-level tokenizers cut a text before they join bytes, by the names that files use."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SHORT}"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SHORT}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, kw_only=True)
class PreTokenizer:
    """A way to cut: digits one by one first, or a pattern; GPT-2's own where there is none."""

    names: tuple[str, ...]
    pattern: str | None = None
    has_single_digits: bool = False
    takes_words: bool = False  # a word that is a token is not put together from parts


_ROWS = (
    PreTokenizer(names=("gpt-2", "phi-2", "mpt", "olmo", "jina-es", "jina-de", "roberta-bpe")),
    PreTokenizer(
        names=("smollm", "starcoder", "refact", "command-r", "codeshell"), has_single_digits=True
    ),
    PreTokenizer(
        names=("llama-bpe", "llama-v3", "llama3", "smaug-bpe", "falcon3", "pixtral"),
        pattern=_LLAMA3,
        takes_words=True,
    ),
    PreTokenizer(
        names=("qwen2", "stablelm2", "deepseek-r1-qwen", "megrez", "hunyuan"),
        pattern=_LLAMA3.replace("{1,3}", ""),
    ),
    PreTokenizer(names=("gpt-4o", "llama4"), pattern=_GPT4O),
)

PRE_TOKENIZERS = MappingProxyType({name: row for row in _ROWS for name in row.names})
