"""How much of an image is read, and why no more: files come from strangers."""

from __future__ import annotations

from typing import Final

# A stream grows with the text of a program, not with its iterations: a large plan has 10,000.
MAX_ITEMS: Final = 1 << 20
# A few bytes can stand for many blocks that are alike: so many for each byte of a section, and a
# number that any section may have. Work stays in proportion to the file.
MAX_PER_BYTE: Final = 32
MIN_ITEMS: Final = 1 << 14
# Numbers of one column: a few operands, waits and terms a block.
MAX_NUMBERS: Final = 1 << 22
# Texts of a section, and their bytes together.
MAX_TEXT_BYTES: Final = 1 << 26
# Repeats inside each other; as many as loops of a program.
MAX_DEPTH: Final = 64
# Operations of a term, and how deep they lie: every walk over a term recurses once a level.
MAX_TERM_OPERATIONS: Final = 1000
MAX_TERM_DEPTH: Final = 400
# Bytes of a file: weights of a network, and the little that is said about them.
MAX_FILE_BYTES: Final = 1 << 32
# Mistakes of a text that are reported: who has more has made one mistake many times.
MAX_FINDINGS: Final = 100
