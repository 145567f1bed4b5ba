"""LEX: characters, literals, and files as a whole."""

from nacre.base.rules import declare

_LEXICAL = "Formal Language Definition / Grammar / Lexical"
_FLOATS = "Formal Language Definition / Grammar / Lexical (FLOAT)"

LEX01 = declare(
    "LEX01",
    "unexpected-character",
    _LEXICAL,
    """
    A character stands outside comments and strings that no token starts with.

    `#` starts a comment that runs to the end of the line. Everything else is made of names,
    numbers, strings and the marks `+ - * / ( ) [ ] { } , : ; = @ < > .`

    Bad (-) and good (+):

        - const X = 4 $ 2
        + const X = 4 * 2
    """,
)
LEX02 = declare(
    "LEX02",
    "unclosed-string",
    _LEXICAL,
    r"""
    A string is not closed before the end of its line.

    Strings stand on one line. Inside, `\"` is a quote and `\\` a backslash; there are no other
    escapes.

    Bad (-) and good (+):

        - include "npm_lite.nem
        + include "npm_lite.nem"
    """,
)
LEX03 = declare(
    "LEX03",
    "malformed-number",
    _FLOATS,
    """
    A number is not written as the grammar asks.

    Integers are decimal digits. A float needs digits on both sides of the point; an exponent
    may follow: `1.0`, `0.5`, `1.0e-5`.

    Bad (-) and good (+):

        - let epsilon = 1e-5
        + let epsilon = 1.0e-5
    """,
    fix="writes the same number as the language does: `0.5`, `1.0e3`, `64` for `0x40`",
)
LEX04 = declare(
    "LEX04",
    "float-in-buffer-size",
    _FLOATS,
    """
    A buffer size contains a float.

    Floats are permitted in compute attributes and quantisation descriptors only; sizes are whole
    numbers of bytes.

    Bad (-) and good (+):

        - buffer B : L2 (size=1.5)
        + buffer B : L2 (size=2)
    """,
    fix="writes the integer where a float such as `64.0` is one",
)
LEX05 = declare(
    "LEX05",
    "float-in-region-bounds",
    _FLOATS,
    """
    A region's offset or extent contains a float.

    Offsets and extents are whole numbers of bytes.

    Bad (-) and good (+):

          buffer B : L2 (size=64)
        - r = region(B, 0.5, 32)
        + r = region(B, 0, 32)
    """,
    fix="writes the integer where a float such as `64.0` is one",
)
LEX06 = declare(
    "LEX06",
    "float-in-shape",
    _FLOATS,
    """
    A shape dimension or a stride contains a float.

    Both count elements.

    Bad (-) and good (+):

          buffer B : L2 (size=4)
        - r = region(B, 0, 4) elem=i8, shape=[1.0, 4], layout=MN
        + r = region(B, 0, 4) elem=i8, shape=[1, 4], layout=MN
    """,
    fix="writes the integer where a float such as `64.0` is one",
)
LEX07 = declare(
    "LEX07",
    "float-in-loop-bound",
    _FLOATS,
    """
    A loop bound contains a float.

    Bounds are integers, and the last one belongs to the range.

    Bad (-) and good (+):

        - loop i in [0..1.5]:
        + loop i in [0..1]:
          endloop
    """,
    fix="writes the integer where a float such as `64.0` is one",
)
LEX08 = declare(
    "LEX08",
    "float-in-const",
    _FLOATS,
    """
    A constant's value contains a float.

    All constants are integers. A float that is used several times can be bound with `let`.

    Bad (-) and good (+):

        - const X = 1.5
        + let X = 1.5
    """,
    fix="writes the integer where a float such as `64.0` is one",
)
LEX09 = declare(
    "LEX09",
    "file-too-large",
    "nacre: limits",
    """
    A file is larger than the limit for source text (64 MiB).

    A program of a million lines fits; what is larger is taken for a mistake before it costs time
    and memory. Write large plans with loops.
    """,
)
LEX10 = declare(
    "LEX10",
    "not-text",
    "nacre: limits",
    """
    A file is not UTF-8 text, or holds NUL characters.

    The place is that of the first byte that cannot be read. Save the file as UTF-8; a byte order
    mark is allowed.
    """,
)
LEX11 = declare(
    "LEX11",
    "file-not-readable",
    "nacre: limits",
    """
    A file that was asked for does not exist, may not be read, or is no file.

    Directories, FIFOs and devices are refused: reading them could wait for ever.
    """,
)
