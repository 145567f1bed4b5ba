"""A language model of letters, which compiles in a second or two."""

from __future__ import annotations

from tests.llm.gguf_bytes import ARRAY, I32, TEXT, U32, Pair
from tests.llm.reference import Sizes

LETTERS = Sizes(layers=1, width=32, heads=4, kv_heads=2, ff=136, vocabulary=29, context=32)
LETTER_KEYS = [
    Pair("tokenizer.ggml.model", TEXT, "gpt2"),
    Pair("tokenizer.ggml.pre", TEXT, "gpt-2"),
    Pair("tokenizer.ggml.tokens", ARRAY, ["<e>", "<s>", *"abcdefghijklmnopqrstuvwxyz", "Ġ"]),
    Pair("tokenizer.ggml.token_type", ARRAY, [3, 3, *[1] * 27], I32),
    Pair("tokenizer.ggml.eos_token_id", U32, 0),
]
