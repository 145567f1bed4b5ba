"""DOC: the order of documents and their loops, and syntax, as the grammar has it."""

from nacre.base.rules import declare

_TOP = "Formal Language Definition / Grammar / Top Level"
_LOOP = "Formal Language Definition / Grammar / Loop"

DOC01 = declare(
    "DOC01",
    "include-not-first",
    _TOP,
    """
    An `include` stands after something else.

    A document begins with its includes; after them comes either one program or a config document
    of type families and devices.

    Bad (-) and good (+):

        + include "npm_lite.nem"
          const X = 1
        - include "npm_lite.nem"
    """,
    fix="moves the include to the top",
)

DOC02 = declare(
    "DOC02",
    "second-program",
    _TOP,
    """
    A file holds a second `program` header.

    A file is one program, ended by the end of the file. Put the second one in a file of its own.

    Bad (-) and good (+):

          program a:
        - program b:
    """,
)

DOC03 = declare(
    "DOC03",
    "device-out-of-place",
    _TOP,
    """
    A program's `device` directive stands after the header or a statement, or there are two.

    A program names its device once, before its header. Further device configurations belong in a
    file that the program includes.

    Bad (-) and good (+):

        + device "npm_lite.nem"
          program p:
        - device "npm_lite.nem"
    """,
)

DOC04 = declare(
    "DOC04",
    "family-in-program",
    _TOP,
    """
    A `type_family` stands in a program.

    Type families belong in config documents; a program sees those of the files that it includes.

    Bad (-) and good (+):

        - program p:
          type_family relu<T: {i8}> {
              input: T
              output: T
              variants:
                  default: {} conformance: { MAY <i8> }
          }
    """,
)

DOC05 = declare(
    "DOC05",
    "malformed-program-header",
    _TOP,
    """
    A program header is not `program NAME:`.

    Bad (-) and good (+):

        - program p
        + program p:
          const X = 1
    """,
    fix="adds the colon that the header lacks",
)

DOC06 = declare(
    "DOC06",
    "unbalanced-loop",
    _LOOP,
    """
    A `loop` lacks its `endloop`, or an `endloop` has no `loop`.

    Bad (-) and good (+):

          loop i in [0..3]:
        + endloop
    """,
)

DOC19 = declare(
    "DOC19",
    "syntax-error",
    "Formal Language Definition / Grammar",
    """
    Something else stands where the grammar expects a certain word or mark.

    The message says what was expected and what was found. Reading goes on at the next statement.

    Bad (-) and good (+):

        - buffer B L2 (size=4)
        + buffer B : L2 (size=4)
    """,
    fix=(
        "adds a mark that alone can stand there, takes a comma out that is one too "
        "many, and writes the word that was meant where it can be one only"
    ),
)

DOC20 = declare(
    "DOC20",
    "nested-too-deeply",
    "nacre: limits",
    """
    Parentheses, lists or loops are nested more deeply than 100 (loops: 64), or one expression has
    more than 400 operators.

    The bounds keep a hostile file from exhausting the reader. Name parts of a large expression
    with `const` or `let`.
    """,
)

DOC24 = declare(
    "DOC24",
    "literal-expected",
    "Formal Language Definition / Grammar",
    """
    An expression stands where the grammar takes an integer literal only.

    `axis` and `group_size` of a quantisation descriptor, `num_engines` and unit counts are
    written as numbers, so that a reader sees them at a glance.

    Bad (-) and good (+):

        - const A = 0
          buffer B : L2 (size=4)
          r = region(B, 0, 4) elem=i8, shape=[4], layout=C,
        -     quant=per_channel(axis=A, scales=[1.0, 1.0, 1.0, 1.0], zero_points=[0, 0, 0, 0])
        +     quant=per_channel(axis=0, scales=[1.0, 1.0, 1.0, 1.0], zero_points=[0, 0, 0, 0])
    """,
)

DOC25 = declare(
    "DOC25",
    "findings-left-out",
    "nacre: limits",
    """
    A check found more than 1000 things; the first are shown, errors before all others.
    """,
    severity="info",
)
