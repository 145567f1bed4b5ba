"""How much a chat template may do, and why no more: it is a stranger's program."""

from __future__ import annotations

from typing import Final

# The largest of published models have 20,000 characters.
MAX_TEMPLATE: Final = 1 << 17
# Each level of an expression is 16 calls of Python, of a block four.
MAX_DEPTH: Final = 20
MAX_BLOCK_DEPTH: Final = 40
MAX_BEHIND: Final = 60  # items, calls and filters behind a value
# A conversation of 1,000 messages takes some 50,000.
MAX_STEPS: Final = 200_000
MAX_TEXT: Final = 1 << 24  # characters of any text on the way, and of the prompt
MAX_NUMBER: Final = 1 << 63
MAX_RANGE: Final = 10_000
