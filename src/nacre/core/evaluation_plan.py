"""A module made ready to run: verified, every operation bound, every value's last use known."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from nacre.base.diagnostics import InputError, has_errors
from nacre.base.source import Span
from nacre.core.evaluation_constants import stored_weights
from nacre.core.evaluation_memory import OVERWRITING, Birth, Layout, laid_out
from nacre.core.evaluation_run import Plan, Step, refused
from nacre.core.evaluation_run import place as place  # noqa: PLC0414 - others have it from here
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.ops import OPS, OpSpec
from nacre.core.rules.evaluation import EVL05
from nacre.core.rules.module_rules import MOD15
from nacre.core.values import Array, Literal
from nacre.core.verify import verify
from nacre.kernels.call import Call, Known, Run
from nacre.kernels.call import TensorType as KernelType
from nacre.kernels.registry import PRIMITIVES

_SCALARS = {"ConstI64": "i64", "ConstF32": "f32", "ConstF64": "f64"}


def made_plan(module: Module, ordered: bool) -> Plan:
    """A module ready to run; InputError has the findings of the verifier if it is none."""
    found = verify(module, "nacre-1")
    if has_errors(found):
        raise InputError(found)
    known = {type_: kernel_type(type_) for type_ in {op.type for op in module.operations}}
    types = {op.value_id: known[op.type] for op in module.operations}
    dead = _last_uses(module)
    peak = _affordable(module, dead, types)
    constants = {
        op.value_id: array
        for op in module.operations
        for array in (constant_array(op),)
        if array is not None
    }
    stored = stored_weights(module, constants)
    if stored:
        peak = _peak(module, dead, types, stored)
    constants |= {value: known.stored for value, known in stored.items()}
    bind = _Binder(module, types, constants, stored, ordered)
    steps = tuple(
        Step(
            index,
            op.value_id,
            op.operands,
            bind(index, op),
            types[op.value_id],
            dead[index],
        )
        for index, op in enumerate(module.operations)
        if op.opcode != "Input" and op.value_id not in constants
    )
    layout = _layout(module, steps, ordered)
    return Plan(module, constants, steps, peak, layout)


def _layout(module: Module, steps: Sequence[Step], ordered: bool) -> Layout:
    """Places for what steps compute; what outlives a run has memory of its own in each of them."""
    kept = {*module.outputs, *(state.output for state in module.states)}
    births = [
        Birth(
            step.value,
            None if step.value in kept else _bytes(step.type),
            step.dead,
            # In order, kernels take other ways, which may read an operand again.
            () if ordered else _heirlooms(module.by_id, module.operations[step.index]),
        )
        for step in steps
    ]
    return laid_out(births)


def _heirlooms(by_id: Mapping[int, CoreOperation], op: CoreOperation) -> tuple[int, ...]:
    """The operands over which an operation may write its result."""
    if op.opcode not in OVERWRITING:
        return ()
    return tuple([operand for operand in op.operands if by_id[operand].type == op.type])


def _machine_bytes() -> int:
    """The memory of the machine; where the system does not say, whatever can be addressed."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return sys.maxsize


class _Binder:
    """Binds operations; those that look alike are bound once."""

    def __init__(
        self,
        module: Module,
        types: dict[int, KernelType],
        constants: Mapping[int, Array],
        stored: Mapping[int, Known],
        ordered: bool,
    ) -> None:
        self._module = module
        self._types = types
        self._constants = constants
        self._stored = stored
        self._hot = _hot(module, constants)
        self._ordered = ordered
        self._bound: dict[object, Run] = {}

    def __call__(self, index: int, op: CoreOperation) -> Run:
        spec = OPS[op.opcode]
        by_id = self._module.by_id
        operands = tuple([by_id[operand].type for operand in op.operands])
        # As keys 0.0 and -0.0 are equal, which some operations tell apart.
        exact = repr(op.attributes) if _has_floats(spec) else None
        known = self._known(op, spec)
        values = tuple([op.operands[at] for at in known])
        key = (op.opcode, operands, op.attributes, op.type, exact, values)
        found = self._bound.get(key)
        if found is None:
            found = self._bound[key] = self._bind(index, op, spec, known)
        return found

    def _known(self, op: CoreOperation, spec: OpSpec) -> dict[int, Known]:
        """The operands that are constants, for a kernel that prepares them."""
        if spec.primitive is None or not PRIMITIVES[spec.primitive].takes_known:
            return {}
        return {
            at: Known(self._constants[value], value in self._hot, self._zero(value))
            for at, value in enumerate(op.operands)
            if value in self._constants
        }

    def _zero(self, value: int) -> Array | None:
        return self._stored[value].zero if value in self._stored else None

    def _bind(self, index: int, op: CoreOperation, spec: OpSpec, known: dict[int, Known]) -> Run:
        if spec.primitive is None:
            raise refused(self._module, index, "there is no kernel for it")
        inputs = tuple([self._types[operand] for operand in op.operands])
        result, attributes = self._types[op.value_id], spec.filled(op.attributes)
        call = Call(inputs, (result,), attributes, self._ordered, known)
        try:
            return PRIMITIVES[spec.primitive].bind(call)
        except (ValueError, TypeError) as error:
            raise refused(self._module, index, str(error)) from error


def _hot(module: Module, constants: Mapping[int, Array]) -> frozenset[int]:
    """Integers that are kept as floats for the products that take them.

    Together they may take as much memory again as all constants have values of a byte; what several
    products take goes first, then what is small.
    """
    uses = Counter(
        operand
        for op in module.operations
        for operand in op.operands
        if operand in constants and constants[operand].dtype.kind in "iu"
    )
    left = sum(array.size for array in {id(a): a for a in constants.values()}.values())
    found = set[int]()
    for value in sorted(uses, key=lambda value: (-uses[value], constants[value].size)):
        bytes_ = 4 * constants[value].size
        if bytes_ <= left:
            left -= bytes_
            found.add(value)
    return frozenset(found)


def _has_floats(spec: OpSpec) -> bool:
    return any(a.kind in ("float", "floats") for a in spec.attributes)


def _last_uses(module: Module) -> list[tuple[int, ...]]:
    """For every operation, the values that nothing needs after it."""
    kept = {*module.outputs, *(state.output for state in module.states)}
    last: dict[int, int] = {}
    for index, op in enumerate(module.operations):
        last[op.value_id] = index
        for operand in op.operands:
            last[operand] = index
    dead: list[list[int]] = [[] for _ in module.operations]
    inputs = {op.value_id for op in module.inputs}
    for value, index in last.items():
        # An Input is no step: one that nothing uses is given in any case.
        if value not in kept and not (
            value in inputs and module.operations[index].value_id == value
        ):
            dead[index].append(value)
    return [tuple(values) for values in dead]


def _affordable(
    module: Module, dead: Sequence[tuple[int, ...]], types: dict[int, KernelType]
) -> int:
    """The most bytes at one time; InputError where the machine has fewer."""
    peak, most = _peak(module, dead, types), _machine_bytes()
    if peak > most:
        message = f"the values need {peak:,} bytes at one time, the machine has {most:,}"
        raise InputError([EVL05.at(place(module, 0), message)])
    return peak


def _peak(
    module: Module,
    dead: Sequence[tuple[int, ...]],
    types: dict[int, KernelType],
    stored: Collection[int] = (),
) -> int:
    by_type = {id(type_): _bytes(type_) for type_ in types.values()}
    sizes = {value: by_type[id(type_)] for value, type_ in types.items()}
    sizes |= dict.fromkeys(stored, 0)  # they are other values, seen in another way
    live = peak = sum(sizes[op.value_id] for op in module.inputs)
    for index, op in enumerate(module.operations):
        if op.opcode == "Input":
            continue
        live += sizes[op.value_id]
        peak = max(peak, live)
        live -= sum([sizes[value] for value in dead[index]])
    return peak


def _bytes(type_: KernelType) -> int:
    count = type_.dtype.itemsize
    for dim in type_.shape:  # in Python's integers: hostile shapes leave those of NumPy
        count *= dim
    return count


def kernel_type(type_: TensorType) -> KernelType:
    """A type as the kernels know it."""
    return KernelType(type_.element, type_.shape)


def carried(array: Array, type_: TensorType) -> Array:
    """An array as the kernels take it: dense, and types below a byte in whole bytes."""
    kernel = kernel_type(type_)
    return np.ascontiguousarray(array, dtype=kernel.dtype).reshape(type_.shape)


def declared(array: Array, type_: TensorType) -> Array:
    """A copy of an array in the element type that was declared."""
    return np.array(array, dtype=type_.element.dtype)


def constant_array(op: CoreOperation) -> Array | None:
    """The value of a constant as the kernels carry it; None where the operation is no constant."""
    if op.opcode in _SCALARS:
        return np.array(op.attributes["value"], op.type.element.dtype)
    if op.opcode != "ConstTensor":
        return None
    data = op.attributes["data"]
    array = data.array if isinstance(data, Literal) else np.array(data, op.type.element.dtype)
    return carried(array, op.type)


def initial_values(module: Module) -> dict[str, Array]:
    """What every state starts as, by the name of its input."""
    found: dict[str, Array] = {}
    for index, state in enumerate(module.states):
        value = constant_array(module.by_id[state.initial])
        if value is None:
            message = f"the initial value %{state.initial} of state `{state.name}` is no constant"
            raise InputError([MOD15.at(_state_place(module, index), message)])
        found[state.name] = value
    return found


def _state_place(module: Module, index: int) -> Span:
    places = module.places
    if places is not None and index < len(places.states):
        return places.source.span(*places.states[index])
    return place(module, len(module.operations))
