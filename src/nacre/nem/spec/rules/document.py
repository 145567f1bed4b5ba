"""DOC: the structure of documents and statements, as the grammar has it."""

from nacre.base.rules import declare

_TOP = "Formal Language Definition / Grammar / Top Level"
_DECL = "Formal Language Definition / Grammar / Declarations"
_TASK = "Formal Language Definition / Grammar / Tasks"
_LOOP = "Formal Language Definition / Grammar / Loop"
_TYPE = "Type System / Region Type Syntax"

DOC01 = declare(
    "DOC01",
    "include-not-first",
    _TOP,
    """
    An `include` stands after something else.

    A document begins with its includes; after them comes either one program or a config document
    of type families and devices.

    Bad:

        const X = 1
        include "npm_lite.nem"

    Good:

        include "npm_lite.nem"
        const X = 1
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

    Bad:

        program a:
        program b:

    Good:

        program a:
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

    Bad:

        program p:
        device "npm_lite.nem"

    Good:

        device "npm_lite.nem"
        program p:
    """,
)
DOC04 = declare(
    "DOC04",
    "family-in-program",
    _TOP,
    """
    A `type_family` stands in a program.

    Type families belong in config documents; a program sees those of the files that it includes.

    Bad:

        program p:
        type_family relu<T: {i8}> {
            input: T
            output: T
            variants:
                default: {} conformance: { MAY <i8> }
        }

    Good:

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

    Bad:

        program p
        const X = 1

    Good:

        program p:
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

    Bad:

        loop i in [0..3]:

    Good:

        loop i in [0..3]:
        endloop
    """,
)
DOC07 = declare(
    "DOC07",
    "empty-token-list",
    "Formal Language Definition / Grammar / Common (id_list)",
    """
    `wait()` or `deps=[]` names no token.

    Leave `deps` out when a task depends on nothing.

    Bad:

        wait()

    Good:

        buffer A : DDR (size=4)
        buffer B : L2 (size=4)
        t = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
        wait(t)
    """,
)
DOC08 = declare(
    "DOC08",
    "malformed-type-attributes",
    _TYPE,
    """
    A region's type attributes are incomplete, out of order or given twice.

    They come all together and in this order: `elem`, `shape`, then `layout` or `strides`, and
    last, where there is one, `quant`. A type that `let` named stands for all of them, `type=T`, and
    `quant` may follow where it has none.

    Bad:

        buffer B : L2 (size=4)
        r = region(B, 0, 4) elem=i8

    Good:

        buffer B : L2 (size=4)
        r = region(B, 0, 4) elem=i8, shape=[4], layout=C
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

    Bad:

        buffer B : L2 (size=4)
        r = region(B, 0, 4) elem=i8, shape=[4], layout=C, strides=[1]

    Good:

        buffer B : L2 (size=4)
        r = region(B, 0, 4) elem=i8, shape=[4], strides=[1]
    """,
)
DOC10 = declare(
    "DOC10",
    "compute-without-operands",
    "Formal Language Definition / Grammar / Compute",
    """
    A compute task lacks its `in` list or its `out` list.

    First `in` with the operands that are read, then `out` with those that are written, then
    `deps` and the attributes.

    Bad:

        buffer A : L2 (size=4)
        buffer B : L1 (size=4)
        Y = region(B, 0, 4) elem=i8, shape=[4], layout=C
        transfer.sync(dst=Y, src=region(A, 0, 4))
        relu.async out Y

    Good:

        buffer A : L2 (size=4)
        buffer B : L1 (size=4)
        Y = region(B, 0, 4) elem=i8, shape=[4], layout=C
        transfer.sync(dst=Y, src=region(A, 0, 4))
        relu.async in Y out Y
    """,
)
DOC11 = declare(
    "DOC11",
    "form-missing",
    "Task Taxonomy / Compute Tasks",
    """
    A task lacks its form: `.async` or `.sync`.

    Bad:

        buffer A : L2 (size=4)
        buffer B : L1 (size=4)
        Y = region(B, 0, 4) elem=i8, shape=[4], layout=C
        transfer.sync(dst=Y, src=region(A, 0, 4))
        relu in Y out Y

    Good:

        buffer A : L2 (size=4)
        buffer B : L1 (size=4)
        Y = region(B, 0, 4) elem=i8, shape=[4], layout=C
        transfer.sync(dst=Y, src=region(A, 0, 4))
        relu.async in Y out Y
    """,
    fix="writes the form that was meant, where it is misspelt",
)
DOC12 = declare(
    "DOC12",
    "unknown-opcode",
    "Formal Language Definition / Opcode Signatures",
    """
    A task's opcode is not in the registry.

    The registry lists all opcodes with their operands and attributes. For an operation of your
    own there is `compute.async in ... out ... op="name"`.

    Bad:

        buffer A : L2 (size=4)
        buffer B : L1 (size=4)
        Y = region(B, 0, 4) elem=i8, shape=[4], layout=C
        transfer.sync(dst=Y, src=region(A, 0, 4))
        rellu.async in Y out Y

    Good:

        buffer A : L2 (size=4)
        buffer B : L1 (size=4)
        Y = region(B, 0, 4) elem=i8, shape=[4], layout=C
        transfer.sync(dst=Y, src=region(A, 0, 4))
        relu.async in Y out Y
    """,
    fix="writes the word that was meant, where it can be one only",
)
DOC13 = declare(
    "DOC13",
    "unknown-memory-level",
    "Abstract Machine Model / Memory Levels",
    """
    A buffer's level is not `DDR`, `L2`, `L1` or `L1[k]`.

    Only L1 belongs to an engine and takes an index.

    Bad:

        buffer B : L3 (size=4)

    Good:

        buffer B : L2 (size=4)
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

    Bad:

        buffer B : L2 (size=4, banks=2)

    Good:

        buffer B : L2 (size=4, align=64)
    """,
    fix="writes the word that was meant, where it can be one only",
)
DOC15 = declare(
    "DOC15",
    "buffer-property-count",
    _DECL,
    """
    A buffer lacks its size, or gives a property twice.

    Bad:

        buffer B : L2 (align=64)

    Good:

        buffer B : L2 (size=4, align=64)
    """,
    fix="takes the second one out where both say the same",
)
DOC16 = declare(
    "DOC16",
    "unknown-element-type",
    "Type System / Element Types",
    """
    An element type is none of the ten: `i4 i8 i16 i32 u8 u16 u32 f16 bf16 f32`.

    Bad:

        buffer B : L2 (size=8)
        r = region(B, 0, 8) elem=i64, shape=[1], layout=C

    Good:

        buffer B : L2 (size=8)
        r = region(B, 0, 8) elem=i32, shape=[2], layout=C
    """,
    fix="writes the type that was meant: `int8` is `i8`",
)
DOC17 = declare(
    "DOC17",
    "repeated-attribute",
    "Formal Language Definition / Grammar / Compute",
    """
    A task gives an attribute, an argument or `deps` twice.

    Bad:

        buffer A : L2 (size=8)
        buffer B : L1 (size=8)
        Y = region(B, 0, 8) elem=f16, shape=[4], layout=C
        transfer.sync(dst=Y, src=region(A, 0, 8))
        softmax.async in Y out Y axis=0 axis=0

    Good:

        buffer A : L2 (size=8)
        buffer B : L1 (size=8)
        Y = region(B, 0, 8) elem=f16, shape=[4], layout=C
        transfer.sync(dst=Y, src=region(A, 0, 8))
        softmax.async in Y out Y axis=0
    """,
    fix="takes the second one out where both say the same",
)
DOC18 = declare(
    "DOC18",
    "malformed-copy-arguments",
    _TASK,
    """
    A transfer or store lacks `dst` or `src`, or has an argument that does not exist.

    The arguments are `dst`, `src` and, where there are dependences, `deps`.

    Bad:

        buffer A : DDR (size=4)
        transfer.async(dst=region(A, 0, 4))

    Good:

        buffer A : DDR (size=4)
        buffer B : L2 (size=4)
        transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
    """,
    fix="writes the word that was meant, where it can be one only",
)
DOC19 = declare(
    "DOC19",
    "syntax-error",
    "Formal Language Definition / Grammar",
    """
    Something else stands where the grammar expects a certain word or mark.

    The message says what was expected and what was found. Reading goes on at the next statement.

    Bad:

        buffer B L2 (size=4)

    Good:

        buffer B : L2 (size=4)
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
DOC21 = declare(
    "DOC21",
    "upper-case-in-out",
    "Formal Language Definition / Grammar / Compute",
    """
    `IN` or `OUT` is written in upper case.

    It is understood; the canonical form, which `nacre fmt` writes, is lower case.

    Bad:

        buffer A : L2 (size=4)
        buffer B : L1 (size=4)
        Y = region(B, 0, 4) elem=i8, shape=[4], layout=C
        transfer.sync(dst=Y, src=region(A, 0, 4))
        relu.async IN Y OUT Y

    Good:

        buffer A : L2 (size=4)
        buffer B : L1 (size=4)
        Y = region(B, 0, 4) elem=i8, shape=[4], layout=C
        transfer.sync(dst=Y, src=region(A, 0, 4))
        relu.async in Y out Y
    """,
    fix="writes `in` and `out`",
    severity="warning",
)
DOC22 = declare(
    "DOC22",
    "type-attributes-inside",
    _TYPE,
    """
    Type attributes stand inside the parentheses of `region( )`. Reported with `--strict` only.

    The prose of the language text writes them inside, its grammar outside. Both are read;
    `nacre fmt` moves them outside.

    Bad:

        buffer B : L2 (size=4)
        r = region(B, 0, 4, elem=i8, shape=[4], layout=C)

    Good:

        buffer B : L2 (size=4)
        r = region(B, 0, 4) elem=i8, shape=[4], layout=C
    """,
    fix="moves the attributes behind the parenthesis",
    severity="warning",
    strict_only=True,
)
DOC23 = declare(
    "DOC23",
    "arguments-out-of-order",
    _TASK,
    """
    The named arguments of a task are not in the canonical order. Reported with `--strict` only.

    The order is `dst`, `src`, `deps`; `nacre fmt` restores it.

    Bad:

        buffer A : DDR (size=4)
        buffer B : L2 (size=4)
        transfer.async(src=region(A, 0, 4), dst=region(B, 0, 4))

    Good:

        buffer A : DDR (size=4)
        buffer B : L2 (size=4)
        transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
    """,
    fix="puts the arguments in order",
    severity="warning",
    strict_only=True,
)
DOC24 = declare(
    "DOC24",
    "literal-expected",
    "Formal Language Definition / Grammar",
    """
    An expression stands where the grammar takes an integer literal only.

    `axis` and `group_size` of a quantisation descriptor, `num_engines` and unit counts are
    written as numbers, so that a reader sees them at a glance.

    Bad:

        const A = 0
        buffer B : L2 (size=4)
        r = region(B, 0, 4) elem=i8, shape=[4], layout=C,
            quant=per_channel(axis=A, scales=[1.0, 1.0, 1.0, 1.0], zero_points=[0, 0, 0, 0])

    Good:

        buffer B : L2 (size=4)
        r = region(B, 0, 4) elem=i8, shape=[4], layout=C,
            quant=per_channel(axis=0, scales=[1.0, 1.0, 1.0, 1.0], zero_points=[0, 0, 0, 0])
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
SIG20 = declare(
    "SIG20",
    "wait-as-a-task",
    "Task Taxonomy / Control Tasks / wait",
    """
    `wait` is given a form or a token.

    `wait` is a statement: it has no `.async` or `.sync` and completes without a token of its own.

    Bad:

        buffer A : DDR (size=4)
        buffer B : L2 (size=4)
        t = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
        w = wait(t)

    Good:

        buffer A : DDR (size=4)
        buffer B : L2 (size=4)
        t = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
        wait(t)
    """,
    fix="writes `wait(...)` alone",
)
