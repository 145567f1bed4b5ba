"""DOC: buffers, regions and types as they are written."""

from nacre.base.rules import declare

_DECL = "Formal Language Definition / Grammar / Declarations"
_TYPE = "Type System / Region Type Syntax"

DOC08 = declare(
    "DOC08",
    "malformed-type-attributes",
    _TYPE,
    """
    A region's type attributes are incomplete, out of order or given twice.

    They come all together and in this order: `elem`, `shape`, then `layout` or `strides`, and
    last, where there is one, `quant`. A type that `let` named stands for all of them, `type=T`, and
    `quant` may follow where it has none.

    Bad (-) and good (+):

          buffer B : L2 (size=4)
        - r = region(B, 0, 4) elem=i8
        + r = region(B, 0, 4) elem=i8, shape=[4], layout=C
    """,
    fix=(
        "puts the attributes in order, and writes the word that was meant where it can be one only"
    ),
)

DOC09 = declare(
    "DOC09",
    "layout-and-strides",
    "Type System / Layout and Strides",
    """
    A region has both `layout` and `strides`.

    They are two ways to say the same: `layout` means dense in the order of `shape`.

    Bad (-) and good (+):

          buffer B : L2 (size=4)
        - r = region(B, 0, 4) elem=i8, shape=[4], layout=C, strides=[1]
        + r = region(B, 0, 4) elem=i8, shape=[4], strides=[1]
    """,
)

DOC13 = declare(
    "DOC13",
    "unknown-memory-level",
    "Abstract Machine Model / Memory Levels",
    """
    A buffer's level is not `DDR`, `L2`, `L1` or `L1[k]`.

    Only L1 belongs to an engine and takes an index.

    Bad (-) and good (+):

        - buffer B : L3 (size=4)
        + buffer B : L2 (size=4)
    """,
    fix="writes the word that was meant, where it can be one only",
)

DOC14 = declare(
    "DOC14",
    "malformed-buffer-property",
    _DECL,
    """
    A buffer has a property that does not exist, or an `align` that is not an integer literal.

    The properties are `size`, any integer expression, and `align`, a literal.

    Bad (-) and good (+):

        - buffer B : L2 (size=4, banks=2)
        + buffer B : L2 (size=4, align=64)
    """,
    fix="writes the word that was meant, where it can be one only",
)

DOC15 = declare(
    "DOC15",
    "buffer-property-count",
    _DECL,
    """
    A buffer lacks its size, or gives a property twice.

    Bad (-) and good (+):

        - buffer B : L2 (align=64)
        + buffer B : L2 (size=4, align=64)
    """,
    fix="takes the second one out where both say the same",
)

DOC16 = declare(
    "DOC16",
    "unknown-element-type",
    "Type System / Element Types",
    """
    An element type is none of the ten: `i4 i8 i16 i32 u8 u16 u32 f16 bf16 f32`.

    Bad (-) and good (+):

          buffer B : L2 (size=8)
        - r = region(B, 0, 8) elem=i64, shape=[1], layout=C
        + r = region(B, 0, 8) elem=i32, shape=[2], layout=C
    """,
    fix="writes the type that was meant: `int8` is `i8`",
)

DOC22 = declare(
    "DOC22",
    "type-attributes-inside",
    _TYPE,
    """
    Type attributes stand inside the parentheses of `region( )`. Reported with `--strict` only.

    The prose of the language text writes them inside, its grammar outside. Both are read;
    `nacre fmt` moves them outside.

    Bad (-) and good (+):

          buffer B : L2 (size=4)
        - r = region(B, 0, 4, elem=i8, shape=[4], layout=C)
        + r = region(B, 0, 4) elem=i8, shape=[4], layout=C
    """,
    fix="moves the attributes behind the parenthesis",
    severity="warning",
    strict_only=True,
)
