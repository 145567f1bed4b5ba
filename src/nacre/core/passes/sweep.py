"""How local rewrites run: one walk down a module that keeps every operation in its simplest form.

A rewrite looks at one operation and at the operations above it, which are simple already; so one
walk reaches the point where nothing more can be rewritten, in time linear in the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from nacre.core.module import CoreOperation, Labels, Module, State
from nacre.core.ops import OPS
from nacre.core.values import Array, Literal, Word, attributes

_SCALARS = {"ConstI64": "int64", "ConstF32": "float32", "ConstF64": "float64"}
_SCALAR_OPCODES = {"i64": "ConstI64", "f32": "ConstF32", "f64": "ConstF64"}
CONSTANTS = frozenset(name for name, spec in OPS.items() if "constant" in spec.traits)


class Seen:
    """What a walk has kept so far: definitions by id, and constants as arrays."""

    def __init__(self, parameters: Mapping[int, tuple[str, ...]] | None = None) -> None:
        self.definitions: dict[int, CoreOperation] = {}
        self.parameters = dict(parameters or {})  # names of constants that are parameters
        self._arrays: dict[int, Array | None] = {}
        self._fills: dict[int, int | float | None] = {}

    def of(self, value: int, *opcodes: str) -> CoreOperation | None:
        """The operation that defines a value, if it is one of these."""
        found = self.definitions[value]
        return found if found.opcode in opcodes else None

    def constant(self, value: int) -> Array | None:
        """The elements of a constant; None where the value is no constant."""
        op = self.definitions[value]
        if op.opcode not in CONSTANTS:
            return None
        if value not in self._arrays:
            self._arrays[value] = constant_array(op)
        return self._arrays[value]

    def fill(self, value: int) -> int | float | None:
        """0 or 1 (or -0.0) where every element of a constant is that, sign included; or None.

        None for a parameter, too: a norm that is not trained yet has ones, and is there all the
        same.
        """
        if self.definitions[value].opcode not in CONSTANTS or value in self.parameters:
            return None
        if value not in self._fills:
            self._fills[value] = _fill(self.constant(value))
        return self._fills[value]


# None: nothing to do. An id: the value to use instead. An operation: what stands there instead,
# with the same id and type.
Found = CoreOperation | int | None
Rewrite = Callable[[CoreOperation, Seen], Found]


def sweep(module: Module, *rewrites: Rewrite) -> Module:
    """The module with each operation rewritten until none of the rewrites applies."""
    seen, renamed = Seen(module.parameter_names), dict[int, int]()
    definitions, kept, is_changed = seen.definitions, list[CoreOperation](), False
    for op in module.operations:
        found: CoreOperation | int = _renamed(op, renamed) if renamed else op
        while not isinstance(found, int):
            following = _first(found, seen, rewrites)
            if following is None:
                break
            found = following
        is_changed = is_changed or found is not op
        if isinstance(found, int):
            renamed[op.value_id] = found
            continue
        kept.append(found)
        definitions[op.value_id] = found
    if not is_changed:
        return module
    made = _with_names(module, tuple(kept), renamed)
    if made.labels is None or not seen.parameters:
        return made
    return replace(made, labels=replace(made.labels, parameters=seen.parameters))


def _first(op: CoreOperation, seen: Seen, rewrites: tuple[Rewrite, ...]) -> Found:
    for rewrite in rewrites:
        found = rewrite(op, seen)
        if found is not None:
            return found
    return None


def _renamed(op: CoreOperation, renamed: dict[int, int]) -> CoreOperation:
    for operand in op.operands:
        if operand in renamed:
            return with_operands(op, *(renamed.get(o, o) for o in op.operands))
    return op


def _with_names(
    module: Module, operations: tuple[CoreOperation, ...], renamed: dict[int, int]
) -> Module:
    """The module with other operations, and outputs and states under their new names."""
    outputs = tuple(renamed.get(value, value) for value in module.outputs)
    states = tuple(
        State(s.name, renamed.get(s.output, s.output), renamed.get(s.initial, s.initial))
        for s in module.states
    )
    return Module(operations, outputs, states, labels=_joined(module, renamed))


def _joined(module: Module, renamed: dict[int, int]) -> Labels | None:
    """Labels where equal operations have become one: it is called after both."""
    if module.labels is None or not module.labels.nodes:
        return module.labels
    pairs = [
        (value, kept)
        for value, kept in renamed.items()
        if module.by_id[value].opcode == module.by_id[kept].opcode
    ]
    return module.labels.joined(pairs) if pairs else module.labels


def with_operands(op: CoreOperation, *operands: int) -> CoreOperation:
    """The same operation on other operands."""
    return CoreOperation(op.value_id, op.opcode, operands, op.attributes, op.type)


def constant_array(op: CoreOperation) -> Array | None:
    """The elements of a constant operation; None where its literal is not one."""
    if op.opcode in _SCALARS:
        with np.errstate(over="ignore"):
            return np.array(op.attributes["value"], _SCALARS[op.opcode])
    data = op.attributes.get("data")
    return data.array if isinstance(data, Literal) else None


def as_constant(op: CoreOperation, array: Array) -> CoreOperation:
    """The constant that stands in for an operation: scalars as `ConstI64` and the like."""
    scalar = _SCALAR_OPCODES.get(op.type.dtype) if op.type.shape == () else None
    if scalar is not None:
        return CoreOperation(
            op.value_id, scalar, (), attributes({"value": array[()].item()}), op.type
        )
    given = {"data": Literal(array), "dtype": Word(op.type.dtype), "shape": op.type.shape}
    return CoreOperation(op.value_id, "ConstTensor", (), attributes(given), op.type)


def _fill(array: Array | None) -> int | float | None:
    if array is None or array.size == 0 or array.dtype.kind not in "iuf":
        return None
    first = array.flat[0]
    if first not in (0, 1) or not bool((array == first).all()):
        return None
    if array.dtype.kind != "f":
        return int(first)
    signs = np.signbit(array)
    return float(first) if bool((signs == signs.flat[0]).all()) else None
