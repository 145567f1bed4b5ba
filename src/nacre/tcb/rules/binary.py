"""TCB10-TCB16: images as bytes, `.tcb` files."""

from nacre.base.binary.cursor import ByteRules
from nacre.base.rules import declare

_FILE = "TCB / Files"
_TCB = "TCB"

TCB10 = declare(
    "TCB10", "file-damaged", _FILE,
    """
    The bytes of a `.tcb` file are not those that were written: a part ends too early or goes on
    behind its end, or a checksum is that of other bytes. Nothing of such a file is used.
    """, language=_TCB)  # fmt: skip
TCB11 = declare(
    "TCB11", "not-tcb", _FILE,
    """
    The file does not begin as images do, or is of a version that this reader does not know.

    Files of every version that was ever written stay readable. A newer one needs a newer nacre.
    """, language=_TCB)  # fmt: skip
TCB12 = declare(
    "TCB12", "file-feature-unknown", _FILE,
    """
    The file has a feature that this reader does not know; the message names it.

    What is unknown is refused rather than skipped: blocks without a part are other blocks.
    """, language=_TCB)  # fmt: skip
TCB13 = declare(
    "TCB13", "file-table", _FILE,
    """
    The table of a `.tcb` file names sections that cannot be: unknown, twice, out of order, or one
    that every file has is missing.
    """, language=_TCB)  # fmt: skip
TCB14 = declare(
    "TCB14", "file-not-canonical", _FILE,
    """
    The bytes say something in another way than they would be written.

    An image has one encoding, so that equal images are equal files, and a file that is read and
    written again is the same.
    """, language=_TCB)  # fmt: skip
TCB15 = declare(
    "TCB15", "file-too-large", _FILE,
    """
    A `.tcb` file asks for more than is read. A few bytes can stand for millions of blocks, so
    counts are compared with a limit before anything of that size is made.
    """, language=_TCB)  # fmt: skip
TCB16 = declare(
    "TCB16", "file-content", _FILE,
    """
    A number in a `.tcb` file stands for nothing: a text, a form or a word that is not there, or a
    term that is none.
    """, language=_TCB)  # fmt: skip

BYTE_RULES = ByteRules(damaged=TCB10, not_canonical=TCB14, too_large=TCB15)
