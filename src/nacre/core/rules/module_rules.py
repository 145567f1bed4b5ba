"""MOD01-MOD09, MOD14, MOD15: ids, order, inputs, outputs and state of a whole module."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping

from nacre.base.excerpt import backquote
from nacre.base.rules import declare
from nacre.core.module import CoreOperation, Module, State, TensorType
from nacre.core.ops import OPS
from nacre.core.rules.signature import type_text

_MODEL = "Core IR / IR module model"
_VERIFICATION = "Core IR / Verification"
CORE = "Core IR"
MOST_ID = 10**18  # the text form has no larger ones

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
MOD04 = declare(
    "MOD04", "no-control-flow", _MODEL,
    """
    There are no blocks, labels or branches: a line with one cannot be read, and an opcode such as
    `br` does not exist.
    """, behaviour=True, language=CORE)  # fmt: skip
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
MOD09 = declare(
    "MOD09", "deterministic-findings", _VERIFICATION,
    """
    A module has the same findings in the same order whenever it is verified.
    """, behaviour=True, language=CORE)  # fmt: skip
MOD14 = declare(
    "MOD14", "single-result", f"{_MODEL} / Values",
    """
    Every operation defines exactly one value.
    """, behaviour=True, language=CORE)  # fmt: skip
MOD15 = declare(
    "MOD15", "state", "Core IR / State",
    """
    A state names an input, an output or an initial value that does not exist, or their types
    differ, or the initial value is no constant, or an input has two states. `core-v1` has no state.
    """, language=CORE)  # fmt: skip

TXT03 = declare(
    "TXT03", "lossless-text", f"{_MODEL} / Reference encoding",
    """
    A module that is printed and read is the same module, and canonical text that is read and
    printed is the same text.
    """, behaviour=True, language=CORE)  # fmt: skip
TXT04 = declare(
    "TXT04", "attribute-order", f"{_MODEL} / Reference encoding",
    """
    Attributes are printed by ascending name, in whatever order they are written.
    """, behaviour=True, language=CORE)  # fmt: skip
TXT06 = declare(
    "TXT06", "operation-record", f"{_MODEL} / CoreOperation structure",
    """
    An operation has `value_id`, `opcode`, `operands`, `attributes` and `result_type`.
    """, behaviour=True, language=CORE)  # fmt: skip


def record_problem(op: CoreOperation) -> str | None:
    """What keeps a record from being looked at: a module need not come from the reader."""
    if not is_id(op.value_id):
        return "the id of an operation is not a number from 0 to 10^18 - 1"
    if type(op.operands) is not tuple or not all(map(is_id, op.operands)):
        return f"the operands of %{op.value_id} are not a list of ids"
    if not isinstance(op.opcode, str):
        return f"the opcode of %{op.value_id} is not a name"
    if not isinstance(op.attributes, dict):
        return f"the attributes of %{op.value_id} are not a dictionary"
    type_: object = op.type
    return None if isinstance(type_, TensorType) else f"%{op.value_id} has no type"


def is_id(value: object) -> bool:
    """Whether something can be the id of a value."""
    return type(value) is int and 0 <= value < MOST_ID


def id_text(value: object) -> str:
    """An id for a message, whatever stands in its place."""
    return f"%{value}" if is_id(value) else f"(a {type(value).__name__} that is no id)"


def input_name_problem(name: str, taken: Container[str], input_: str) -> str | None:
    """What MOD08 says of the name of an Input, which a message calls `input_`."""
    if not name:
        return f"the name of {input_} is empty"
    if not is_text(name):
        return f"the name of {input_} is no text: it has half a character"
    return f"two Inputs are named {backquote(name)}" if name in taken else None


def state_problems(
    state: State,
    inputs: Mapping[str, TensorType],
    defined: Callable[[int], CoreOperation | None],
    taken: Container[str],
) -> Iterator[str]:
    """What MOD15 says of a state; `taken` are the names of the states before it."""
    if not isinstance(state.name, str):
        yield "the name of a state is not a string"
        return
    name, type_ = backquote(state.name), inputs.get(state.name)
    if type_ is None:
        yield f"state {name} is no Input"
    if state.name in taken:
        yield f"input {name} has two states"
    for value, what in ((state.output, "output"), (state.initial, "initial value")):
        op = defined(value) if is_id(value) else None
        if op is None:
            yield f"the {what} {id_text(value)} of state {name} is not defined"
        elif what == "initial value" and not _is_constant(op):
            yield f"the initial value %{value} of state {name} is no constant"
        elif type_ is not None and op.type != type_:
            found, expected = type_text(op.type), type_text(type_)
            yield f"the {what} of state {name} has type {found}, expected {expected}"


class States:
    """What the states of a module refer to, looked up once."""

    def __init__(self, module: Module) -> None:
        self._inputs: dict[str, TensorType] = {}
        self._defined: dict[int, CoreOperation] = {}
        self._seen: set[str] = set()
        for op in module.operations:
            if record_problem(op) is not None:
                continue
            self._defined.setdefault(op.value_id, op)
            name = op.attributes.get("name")
            if op.opcode == "Input" and isinstance(name, str):
                self._inputs.setdefault(name, op.type)

    def problems(self, state: State) -> Iterator[str]:
        """What MOD15 says of a state."""
        yield from state_problems(state, self._inputs, self._defined.get, self._seen)
        if isinstance(state.name, str):
            self._seen.add(state.name)


def _is_constant(op: CoreOperation) -> bool:
    spec = OPS.get(op.opcode)
    return spec is not None and "constant" in spec.traits


def is_text(name: str) -> bool:
    """Whether a string can be written as UTF-8: half of a surrogate pair cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
