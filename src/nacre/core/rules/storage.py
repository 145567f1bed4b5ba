"""STO01-STO03: modules in files, their big constants in a `.safetensors` beside the text."""

from nacre.base.rules import declare

_CLAUSE = "Core IR / Module contents / Serialisation"
_CORE = "Core IR"

STO01 = declare(
    "STO01", "file-unreadable", _CLAUSE,
    """
    A module's file, or the file with its constants, does not exist or cannot be read: it is no
    UTF-8 text, no `.safetensors`, cut short, or too large; or tensors in it overlap, leave bytes
    over, or have the same name.
    """, language=_CORE)  # fmt: skip
STO02 = declare(
    "STO02", "file-outside", _CLAUSE,
    """
    A constant names a file that does not lie beside the module's text. Only plain names that end in
    `.safetensors` are followed, so that a module from a stranger reads nothing else. Text that does
    not come from a file, such as standard input, has nothing beside it.
    """, language=_CORE)  # fmt: skip
STO03 = declare(
    "STO03", "stored-constant", _CLAUSE,
    """
    A constant refers to a tensor that the file does not hold, or that has another element type or
    shape there than the text says, or the reference itself is malformed.

    A reference reads `{dtype=f32, file="m.core.safetensors", key="3", shape=[64, 64]}`.
    """, language=_CORE)  # fmt: skip
