"""EVL01-EVL05: what an evaluation is given, and what goes wrong while it runs."""

from nacre.base.rules import declare

_MODEL = "Core IR / IR module model / Module contents"
_SEMANTICS = "Core IR / Instruction set and semantics"
_CORE = "Core IR"

EVL01 = declare(
    "EVL01", "input-missing", _MODEL,
    """
    An evaluation is not given one of the module's inputs. Inputs that keep state may be left out:
    they start from their initial value.
    """, language=_CORE)  # fmt: skip
EVL02 = declare(
    "EVL02", "input-unknown", _MODEL,
    """
    An evaluation is given an array under a name that no Input of the module has.
    """, language=_CORE)  # fmt: skip
EVL03 = declare(
    "EVL03", "input-type", _MODEL,
    """
    An array has another element type or another shape than the Input that it is for. Nothing is
    converted or broadcast in silence.
    """, language=_CORE)  # fmt: skip
EVL04 = declare(
    "EVL04", "run-time-fault", _SEMANTICS,
    """
    An operation cannot be computed for the values at hand: an index of `Index` or `Gather` lies
    outside of the tensor.
    """, language=_CORE)  # fmt: skip
EVL05 = declare(
    "EVL05", "out-of-memory", _SEMANTICS,
    """
    The tensors that are alive at one time need more bytes than the machine has.
    """, language=_CORE)  # fmt: skip
