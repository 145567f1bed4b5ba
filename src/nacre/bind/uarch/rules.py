"""BND10-BND13: files that describe a microarchitecture."""

from nacre.base.rules import declare

_UARCH = "TCB / Microarchitecture"
_TCB = "TCB"

BND10 = declare(
    "BND10", "uarch-syntax", _UARCH,
    """
    Something else stands where a part of a `.uarch` file was expected: `uarch NAME`, groups in
    braces, and in each group figures as `key = value`.
    """, language=_TCB)  # fmt: skip
BND11 = declare(
    "BND11", "uarch-figure-unknown", _UARCH,
    """
    A group of a `.uarch` file has a figure that nobody reads.
    """, language=_TCB)  # fmt: skip
BND12 = declare(
    "BND12", "uarch-figure-wrong", _UARCH,
    """
    A figure of a `.uarch` file is none that it can be, or it or its group is given twice.
    """, language=_TCB)  # fmt: skip
BND13 = declare(
    "BND13", "uarch-unreadable", _UARCH,
    """
    The microarchitecture is none that nacre knows by name, and no file that can be read.
    """, language=_TCB)  # fmt: skip
