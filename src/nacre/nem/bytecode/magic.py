"""How files of bytecode are known: by their first bytes, and by the end of their names."""

from __future__ import annotations

from typing import Final

# Like that of PNG: a byte that no text has, and line ends, which copying as text would change.
MAGIC: Final = b"\x89NEMB\r\n\x1a"
MAGIC_START: Final = MAGIC[:5]  # what copying as text leaves of it
SUFFIX: Final = ".nemb"
