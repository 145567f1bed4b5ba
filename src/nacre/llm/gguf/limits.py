"""How much of a GGUF file is read, and why no more: files come from strangers."""

from __future__ import annotations

from typing import Final

# Published files have some dozens of pairs, and some thousands of tensors where experts are apart.
MAX_PAIRS: Final = 1 << 14
MAX_TENSORS: Final = 1 << 17
# The largest vocabularies have 260,000 tokens, each with a score, a type and a merge.
MAX_VALUES: Final = 1 << 23
MAX_KEY_BYTES: Final = 1 << 16  # the format's own bound
# The format's bound is 64; tools of image models write longer ones.
MAX_NAME_BYTES: Final = 256
# The longest text is a `tokenizer.json`: the largest have 34 MB.
MAX_TEXT_BYTES: Final = 1 << 26
# Nobody writes an array of arrays of arrays.
MAX_ARRAY_DEPTH: Final = 4
MAX_DIMENSIONS: Final = 4  # the format's own bound
MAX_ALIGNMENT: Final = 1 << 16  # of pages on any machine
