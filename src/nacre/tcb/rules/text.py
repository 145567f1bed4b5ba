"""TCB01-TCB08: images as assembler text."""

from nacre.base.rules import declare

_TEXT = "TCB / Text"
_TCB = "TCB"

TCB01 = declare(
    "TCB01", "text-token", _TEXT,
    """
    A character begins nothing that an assembler text has, or a string does not end on its line.
    """, language=_TCB)  # fmt: skip
TCB02 = declare(
    "TCB02", "text-statement", _TEXT,
    """
    Something else stands where a statement or one of its parts was expected.

    A text has a version, `image`, `machine`, places, ports, streams, constants and origins; a
    stream has blocks and repeats in braces.
    """, language=_TCB)  # fmt: skip
TCB03 = declare(
    "TCB03", "text-field", _TEXT,
    """
    A statement has a part that it does not know, has one twice, or lacks one that it needs.
    """, language=_TCB)  # fmt: skip
TCB04 = declare(
    "TCB04", "text-value", _TEXT,
    """
    A value cannot be: an integer beyond 64 bits, an escape that there is not, bytes that are no
    base64.
    """, language=_TCB)  # fmt: skip
TCB05 = declare(
    "TCB05", "text-version", _TEXT,
    """
    The text does not begin with `tcb 1`, or is of a version that this reader does not know.
    """, language=_TCB)  # fmt: skip
TCB06 = declare(
    "TCB06", "text-too-large", _TEXT,
    """
    A text has more than is read: items, repeats inside each other, operations of one term.
    """, language=_TCB)  # fmt: skip
TCB07 = declare(
    "TCB07", "text-constant", _TEXT,
    """
    A text names the bytes of a constant by their hash, and they are not at hand, or others are.

    A listing may leave constants out. To make an image of it, give that which it was made of.
    """, language=_TCB)  # fmt: skip
TCB08 = declare(
    "TCB08", "file-unreadable", "TCB / Files",
    """
    The file does not exist, is no regular file, may not be read, or is too large.
    """, language=_TCB)  # fmt: skip
