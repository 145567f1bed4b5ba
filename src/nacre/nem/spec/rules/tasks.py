"""DOC, SIG: tasks as they are written: operands, attributes, arguments, tokens."""

from nacre.base.rules import declare

_TASK = "Formal Language Definition / Grammar / Tasks"

DOC07 = declare(
    "DOC07",
    "empty-token-list",
    "Formal Language Definition / Grammar / Common (id_list)",
    """
    `wait()` or `deps=[]` names no token.

    Leave `deps` out when a task depends on nothing.

    Bad (-) and good (+):

        - wait()
        + buffer A : DDR (size=4)
        + buffer B : L2 (size=4)
        + t = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
        + wait(t)
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

    Bad (-) and good (+):

          buffer A : L2 (size=4)
          buffer B : L1 (size=4)
          Y = region(B, 0, 4) elem=i8, shape=[4], layout=C
          transfer.sync(dst=Y, src=region(A, 0, 4))
        - relu.async out Y
        + relu.async in Y out Y
    """,
)

DOC11 = declare(
    "DOC11",
    "form-missing",
    "Task Taxonomy / Compute Tasks",
    """
    A task lacks its form: `.async` or `.sync`.

    Bad (-) and good (+):

          buffer A : L2 (size=4)
          buffer B : L1 (size=4)
          Y = region(B, 0, 4) elem=i8, shape=[4], layout=C
          transfer.sync(dst=Y, src=region(A, 0, 4))
        - relu in Y out Y
        + relu.async in Y out Y
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

    Bad (-) and good (+):

          buffer A : L2 (size=4)
          buffer B : L1 (size=4)
          Y = region(B, 0, 4) elem=i8, shape=[4], layout=C
          transfer.sync(dst=Y, src=region(A, 0, 4))
        - rellu.async in Y out Y
        + relu.async in Y out Y
    """,
    fix="writes the word that was meant, where it can be one only",
)

DOC17 = declare(
    "DOC17",
    "repeated-attribute",
    "Formal Language Definition / Grammar / Compute",
    """
    A task gives an attribute, an argument or `deps` twice.

    Bad (-) and good (+):

          buffer A : L2 (size=8)
          buffer B : L1 (size=8)
          Y = region(B, 0, 8) elem=f16, shape=[4], layout=C
          transfer.sync(dst=Y, src=region(A, 0, 8))
        - softmax.async in Y out Y axis=0 axis=0
        + softmax.async in Y out Y axis=0
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

    Bad (-) and good (+):

          buffer A : DDR (size=4)
        - transfer.async(dst=region(A, 0, 4))
        + buffer B : L2 (size=4)
        + transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
    """,
    fix="writes the word that was meant, where it can be one only",
)

DOC21 = declare(
    "DOC21",
    "upper-case-in-out",
    "Formal Language Definition / Grammar / Compute",
    """
    `IN` or `OUT` is written in upper case.

    It is understood; the canonical form, which `nacre fmt` writes, is lower case.

    Bad (-) and good (+):

          buffer A : L2 (size=4)
          buffer B : L1 (size=4)
          Y = region(B, 0, 4) elem=i8, shape=[4], layout=C
          transfer.sync(dst=Y, src=region(A, 0, 4))
        - relu.async IN Y OUT Y
        + relu.async in Y out Y
    """,
    fix="writes `in` and `out`",
    severity="warning",
)

DOC23 = declare(
    "DOC23",
    "arguments-out-of-order",
    _TASK,
    """
    The named arguments of a task are not in the canonical order. Reported with `--strict` only.

    The order is `dst`, `src`, `deps`; `nacre fmt` restores it.

    Bad (-) and good (+):

          buffer A : DDR (size=4)
          buffer B : L2 (size=4)
        - transfer.async(src=region(A, 0, 4), dst=region(B, 0, 4))
        + transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
    """,
    fix="puts the arguments in order",
    severity="warning",
    strict_only=True,
)

SIG20 = declare(
    "SIG20",
    "wait-as-a-task",
    "Task Taxonomy / Control Tasks / wait",
    """
    `wait` is given a form, a token or decorators.

    `wait` is a statement: it has no `.async` or `.sync` and completes without a token of its own.
    It runs on no unit, so that no decorator says anything about it.

    Bad (-) and good (+):

          buffer A : DDR (size=4)
          buffer B : L2 (size=4)
          t = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
        - w = wait(t)
        + wait(t)
    """,
    fix="writes `wait(...)` alone",
)
