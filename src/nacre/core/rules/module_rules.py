"""MOD01-MOD09: ids, order, inputs and outputs of a whole module."""

from nacre.base.rules import declare

_MODEL = "Core IR / IR module model"
_VERIFICATION = "Core IR / Verification"
CORE = "Core IR"

MOD01 = declare(
    "MOD01", "operand-not-defined", f"{_VERIFICATION} 1",
    """
    An operand refers to a value that no earlier operation defines.
    """, language=CORE)  # fmt: skip
MOD02 = declare(
    "MOD02", "defined-twice", f"{_VERIFICATION} 1",
    """
    Two operations define the same value.
    """, language=CORE)  # fmt: skip
MOD03 = declare(
    "MOD03", "output-not-defined", f"{_VERIFICATION} 2",
    """
    A declared output refers to a value that no operation defines, or there is no output at all.
    """, language=CORE)  # fmt: skip
MOD05 = declare(
    "MOD05", "ids-out-of-order", f"{_MODEL} / Values",
    """
    Ids do not increase down the text: their order is the order of creation.
    """, language=CORE)  # fmt: skip
MOD06 = declare(
    "MOD06", "input-after-operation", f"{_MODEL} / Reference encoding",
    """
    An Input stands after an operation. Inputs come first and have the lowest ids; `canonicalise`
    moves them up.
    """, language=CORE)  # fmt: skip
MOD07 = declare(
    "MOD07", "input-without-name", f"{_MODEL} / Reference encoding",
    """
    An Input has no name.
    """, language=CORE)  # fmt: skip
MOD08 = declare(
    "MOD08", "input-name", f"{_MODEL} / Module contents",
    """
    Two Inputs have the same name, or a name is empty.
    """, language=CORE)  # fmt: skip
MOD15 = declare(
    "MOD15", "state", "Core IR / State",
    """
    A state names an input, an output or an initial value that does not exist, or their types
    differ.
    """, language=CORE)  # fmt: skip
