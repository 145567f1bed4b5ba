"""GGF01-GGF12: what a GGUF file promises."""

from nacre.base.rules import declare

_FILE = "GGUF / File"
_HEADER = "GGUF / Header"
_METADATA = "GGUF / Metadata"
_TENSORS = "GGUF / Tensors"
_LLM = "LLM"

GGF01 = declare(
    "GGF01", "gguf-unreadable", _FILE,
    """
    The file does not exist, is no regular file, or may not be read.
    """, language=_LLM)  # fmt: skip
GGF02 = declare(
    "GGF02", "not-gguf", _HEADER,
    """
    The file does not begin with the four bytes `GGUF`: it is something else.
    """, language=_LLM)  # fmt: skip
GGF03 = declare(
    "GGF03", "gguf-version", _HEADER,
    """
    The version is neither 2 nor 3, in either byte order. Version 1 counted in 32 bits and was
    given up within weeks.
    """, language=_LLM)  # fmt: skip
GGF04 = declare(
    "GGF04", "gguf-cut-short", _FILE,
    """
    A count or a size asks for more bytes than the file has left.

    Every count is compared with the bytes behind it before anything of that size is made, so that
    a few bytes cannot ask for hours or for all memory.
    """, language=_LLM)  # fmt: skip
GGF05 = declare(
    "GGF05", "gguf-too-large", _FILE,
    """
    The file has more pairs, tensors or values than are read, or a text that is longer.
    """, language=_LLM)  # fmt: skip
GGF06 = declare(
    "GGF06", "metadata-value", _METADATA,
    """
    A value of the metadata is none: its type is unknown, a text is no UTF-8, a boolean is neither
    0 nor 1, arrays lie too deep in each other.
    """, language=_LLM)  # fmt: skip
GGF07 = declare(
    "GGF07", "metadata-key", _METADATA,
    """
    A key is empty, or stands there twice.
    """, language=_LLM)  # fmt: skip
GGF08 = declare(
    "GGF08", "alignment", _METADATA,
    """
    `general.alignment` is no power of two of 32 bits, or larger than any file needs.
    """, language=_LLM)  # fmt: skip
GGF09 = declare(
    "GGF09", "tensor-name", _TENSORS,
    """
    The name of a tensor is empty, or another tensor has it.
    """, language=_LLM)  # fmt: skip
GGF10 = declare(
    "GGF10", "tensor-shape", _TENSORS,
    """
    A tensor has no dimension or more than four, one of size 0, more elements than 64 bits count,
    or rows that are no multiple of the blocks of its type.
    """, language=_LLM)  # fmt: skip
GGF11 = declare(
    "GGF11", "tensor-type", _TENSORS,
    """
    The type of a tensor is unknown, was withdrawn, or is one that no file should hold; the message
    names it.
    """, language=_LLM)  # fmt: skip
GGF12 = declare(
    "GGF12", "tensor-place", _TENSORS,
    """
    The bytes of a tensor do not begin at a multiple of the alignment, end behind the file, or are
    those of another tensor.
    """, language=_LLM)  # fmt: skip
