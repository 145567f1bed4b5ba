"""MLR02 to MLR06: modules of MLIR that are no programs of NEM."""

from nacre.base.rules import declare

MLR02 = declare(
    "MLR02", "unreadable-mlir", "MLIR / the dialect `nem`",
    """
    A text is no module of MLIR that can be read.

    It has a mistake of syntax, uses an operation or an attribute that neither MLIR's `builtin` nor
    `nem` has, or is nested more deeply than any program is. `nacre nem irdl` writes the dialect as
    a file that `mlir-opt --irdl-file` loads: that tool then says the same, and often more.
    """, language="MLIR")  # fmt: skip

MLR03 = declare(
    "MLR03", "broken-nem-operation", "MLIR / the dialect `nem`",
    """
    An operation of the dialect `nem` breaks what the dialect says of it.

    Each opcode is an operation, and takes the operands and attributes of its row in the table of
    opcodes. A task that is to be judged by `nacre check` instead, with the rule that it breaks, is
    written as `nem.task`, which takes anything.
    """, language="MLIR")  # fmt: skip

MLR04 = declare(
    "MLR04", "hidden-nem-name", "MLIR / the dialect `nem`",
    """
    A value is used where its name means another one, or nothing yet.

    Values of MLIR have no names, programs of NEM have nothing else: an operation says with `name`
    or `token` under which name its result is known, from there to the end of its body. Two
    operations of one name are fine as long as every use means the nearer one.
    """, language="MLIR")  # fmt: skip

MLR05 = declare(
    "MLR05", "no-nem-lowering", "MLIR / lowering",
    """
    A function of upstream's dialects is lowered to NEM, and something in it has no form there.

    Lowered are `affine.for` with constant bounds, `memref.subview` of what a function takes, and
    `linalg.matmul` on such tiles. It is an example of how a compiler ends in NEM, not a compiler.
    """, language="MLIR")  # fmt: skip

MLR06 = declare(
    "MLR06", "xdsl-missing", "MLIR / the dialect `nem`",
    """
    The package `xdsl` is not installed, with which modules of MLIR are read; `pip install
    "nacre[mlir]"` brings it. To write them nothing is needed.
    """, language="MLIR")  # fmt: skip
