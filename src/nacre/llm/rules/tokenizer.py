"""LLM10-LLM12: what a tokenizer in a file promises."""

from nacre.base.rules import declare

_TOKENIZER = "Language models / Tokenizer"
_LLM = "LLM"

LLM10 = declare(
    "LLM10", "tokenizer-unknown", _TOKENIZER,
    """
    The file has no tokenizer, one of a kind that is not built, or one that cuts texts in a way
    that has no name here. Another way would give other tokens, and nobody would see why the model
    is bad.
    """, language=_LLM)  # fmt: skip
LLM11 = declare(
    "LLM11", "tokenizer-broken", _TOKENIZER,
    """
    The parts of a tokenizer do not fit each other: tokens that stand there twice, merges of what is
    no token, as many scores or types as there are not tokens, an id that no token has.
    """, language=_LLM)  # fmt: skip
LLM12 = declare(
    "LLM12", "text-no-token", _TOKENIZER,
    """
    An id that no token has, where a text is asked for.
    """, language=_LLM)  # fmt: skip
