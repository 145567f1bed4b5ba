"""NAC01-NAC16: the file as a container: header, sections, records, texts, limits."""

from nacre.base.rules import declare

_FILE = "NAC / Structure of the binary file"
_HEADER = "NAC / Structure of the binary file / File header"
_SECTIONS = "NAC / Structure of the binary file / Section structure"
_META = "NAC / Metadata sections"
_DATA = "NAC / Data and resource sections"
_NAC = "NAC"

NAC01 = declare(
    "NAC01", "file-unreadable", _FILE,
    """
    The file does not exist, is no regular file, or may not be read.
    """, language=_NAC)  # fmt: skip
NAC02 = declare(
    "NAC02", "not-nac", _HEADER,
    """
    The file does not begin with the three bytes `NAC`: it is something else.
    """, language=_NAC)  # fmt: skip
NAC03 = declare(
    "NAC03", "version-unknown", _HEADER,
    """
    The version byte is neither 1 (v1.6) nor 2 (v1.8).
    """, language=_NAC)  # fmt: skip
NAC04 = declare(
    "NAC04", "cut-short", _FILE,
    """
    A field, a text or a tensor goes on behind the end of its section or of the file. Nothing of
    that section can be trusted; the other sections are still looked at.
    """, language=_NAC)  # fmt: skip
NAC05 = declare(
    "NAC05", "section-tag", _SECTIONS,
    """
    The four bytes to which the table of offsets points are not the tag of that section.
    """, language=_NAC)  # fmt: skip
NAC06 = declare(
    "NAC06", "section-offset", _HEADER,
    """
    The offset of a section points into the header, behind the end of the file, or to where another
    section begins.
    """, language=_NAC)  # fmt: skip
NAC07 = declare(
    "NAC07", "section-overlap", _SECTIONS,
    """
    The records of a section go on into the section that begins behind it.
    """, language=_NAC)  # fmt: skip
NAC08 = declare(
    "NAC08", "section-missing", _SECTIONS,
    """
    The file has no section `OPS `: there is nothing to run. Other sections may be left out as long
    as nothing refers to what they would hold.
    """, language=_NAC)  # fmt: skip
NAC09 = declare(
    "NAC09", "quantization-unknown", _HEADER,
    """
    The header names a quantisation that the format does not have. The codes are 0 (none), 1 (FP16),
    2 (INT8_TENSOR), 3 (INT8_CHANNEL) and 4 (BLOCK_FP8); 5 (INT4_GROUP) is nacre's own.
    """, language=_NAC)  # fmt: skip
NAC10 = declare(
    "NAC10", "reserved-bytes", _HEADER,
    """
    Bytes that are reserved and should be 0 are not.
    """, severity="warning", language=_NAC)  # fmt: skip
NAC11 = declare(
    "NAC11", "unclaimed-bytes", _SECTIONS,
    """
    There are bytes between sections, or behind the last one, that belong to none. They are kept
    when the file is written, but nothing reads them.
    """, severity="warning", language=_NAC)  # fmt: skip
NAC12 = declare(
    "NAC12", "count-impossible", _FILE,
    """
    A section says that it holds more records than the bytes that are left could.
    """, language=_NAC)  # fmt: skip
NAC13 = declare(
    "NAC13", "text-not-utf8", _META,
    """
    A name, a signature or a string constant is no UTF-8.
    """, language=_NAC)  # fmt: skip
NAC14 = declare(
    "NAC14", "defined-twice", _META,
    """
    An id or a name is defined twice in one table: an operation, a constant, a signature, a
    parameter, the name of an input, a tensor, a resource, a tick.
    """, language=_NAC)  # fmt: skip
NAC15 = declare(
    "NAC15", "limit", _FILE,
    """
    A value does not fit in the field that the format has for it: a constant's id, the distance to
    an operand, the number of signatures, operations, instructions or memory commands, the length
    of a name or list. The format has no long form; the finding says what makes the value smaller.
    """, language=_NAC)  # fmt: skip
NAC16 = declare(
    "NAC16", "resource-name", _DATA,
    """
    The name of a resource is empty or could lead out of the folder that it is unpacked to: it has a
    `/`, a `\\\\`, a `:` or a control character, or is `.` or `..`.
    """, language=_NAC)  # fmt: skip
