"""TXT: the text form."""

from nacre.base.rules import declare

_ENCODING = "Core IR / Reference encoding"

TXT01 = declare(
    "TXT01",
    "line-form",
    _ENCODING,
    """
    An operation reads `%id = Opcode (%a, %b) {key=value} : tensor<f32[2, 3]>`; braces without an
    attribute are read and never printed.
    """,
    behaviour=True,
    language="Core IR",
)
TXT02 = declare(
    "TXT02",
    "outputs-line",
    _ENCODING,
    """
    The line `outputs: %a, %b` is missing, stands twice, or has operations behind it: only states
    follow it.
    """,
    language="Core IR",
)
TXT05 = declare(
    "TXT05",
    "malformed-line",
    _ENCODING,
    """
    A line cannot be read: an id, an opcode, operands in parentheses, attributes in braces or a
    type is missing or malformed.
    """,
    language="Core IR",
)
