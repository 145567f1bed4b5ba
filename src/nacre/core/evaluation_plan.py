"""A module made ready to run: verified, every operation bound, every value's last use known."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct

from nacre.base.diagnostics import InputError, has_errors
from nacre.base.rules import Rule
from nacre.base.source import Source, Span
from nacre.core.evaluation_memory import OVERWRITING, Birth, Layout, laid_out
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.ops import OPS, OpSpec
from nacre.core.rules.evaluation import EVL04, EVL05
from nacre.core.rules.module_rules import MOD15
from nacre.core.text.printer import operation_text
from nacre.core.values import Array, Literal
from nacre.core.verify import verify
from nacre.kernels.call import Call, Fault, Run
from nacre.kernels.call import TensorType as KernelType
from nacre.kernels.registry import PRIMITIVES

_SCALARS = {"ConstI64": "i64", "ConstF32": "f32", "ConstF64": "f64"}


class Step(Struct, frozen=True, gc=False):
    """One operation bound to its types."""

    index: int  # of the operation
    value: int
    operands: tuple[int, ...]
    run: Run | None  # None: a constant
    constant: Array | None
    type: KernelType
    dead: tuple[int, ...]  # values that nothing needs afterwards


@dataclass(frozen=True, slots=True)
class Plan:
    """Every step in order, and where its value lies."""

    module: Module
    steps: tuple[Step, ...]
    peak_bytes: int
    layout: Layout  # of the values that do not leave the run
    fresh: frozenset[int]  # those that leave it in memory that nothing else has
    # Memory that no run is using. A run takes it out of here, so that several may go on at once.
    _rooms: list[list[Array | None]] = field(default_factory=list, repr=False, compare=False)

    def run(
        self, inputs: dict[int, Array], progress: Callable[[int, int], None] | None = None
    ) -> dict[int, Array]:
        """The values that outputs and states name, as the kernels carry them.

        `progress` is told how many operations of how many are done.
        """
        try:
            room = self._rooms.pop()
        except IndexError:
            room = self._new_room()
        try:
            values = dict(inputs)
            for step, target in zip(self.steps, room, strict=True):
                values[step.value] = self._result(step, values, target)
                for value in step.dead:
                    del values[value]
                if progress is not None:
                    progress(step.index + 1, len(self.module.operations))
            return values
        finally:
            self._rooms.append(room)

    def _new_room(self) -> list[Array | None]:
        """For every step the array that it fills; None where each run makes one of its own."""
        layout = self.layout
        try:
            block = layout.block()
        except MemoryError as error:
            message = f"the values need {layout.size:,} bytes at one time, which cannot be had"
            raise InputError([EVL05.at(place(self.module, 0), message)]) from error
        return [
            layout.array(block, step.value, step.type) if step.value in layout.places else None
            for step in self.steps
        ]

    def _result(self, step: Step, values: dict[int, Array], target: Array | None) -> Array:
        if step.constant is not None:
            return step.constant
        assert step.run is not None
        operands = [values[operand] for operand in step.operands]
        try:
            result = np.empty(step.type.shape, step.type.dtype) if target is None else target
            fault = step.run(operands, [result])
        except (ValueError, TypeError, MemoryError) as error:
            raise _refused(self.module, step.index, str(error)) from error
        if fault is not None and fault.is_fatal:
            raise _refused(self.module, step.index, _told(fault, len(operands)))
        return result


def _told(fault: Fault, operands: int) -> str:
    if fault.position is None or operands < 2:
        return fault.message
    return f"{fault.message}, at [{', '.join(map(str, fault.position))}]"


def _refused(module: Module, index: int, reason: str, rule: Rule = EVL04) -> InputError:
    op = module.operations[index]
    return InputError([rule.at(place(module, index), f"`{op.opcode}` %{op.value_id}: {reason}")])


def place(module: Module, index: int) -> Span:
    """Where an operation stands: in the text that was read, else in its line of canonical text."""
    places = module.places
    if places is not None and index < len(places.spans):
        return places.source.span(*places.spans[index])
    if index >= len(module.operations):
        return Source("<module>", "").span(0, 0)
    # The other lines are left empty: they may hold megabytes of constants.
    line = operation_text(module.operations[index])
    source = Source("<module>", "\n" * index + line)
    return source.span(index, index + len(line))


def made_plan(module: Module, ordered: bool) -> Plan:
    """A module ready to run; InputError has the findings of the verifier if it is none."""
    found = verify(module, "nacre-1")
    if has_errors(found):
        raise InputError(found)
    known = {type_: kernel_type(type_) for type_ in {op.type for op in module.operations}}
    types = {op.value_id: known[op.type] for op in module.operations}
    dead = _last_uses(module)
    peak = _affordable(module, dead, types)
    bind = _Binder(module, types, ordered)
    steps = tuple(
        Step(
            index,
            op.value_id,
            op.operands,
            None if constant is not None else bind(index, op),
            constant,
            types[op.value_id],
            dead[index],
        )
        for index, op in enumerate(module.operations)
        if op.opcode != "Input"
        for constant in (constant_array(op),)
    )
    layout = _layout(module, steps, ordered)
    computed = {step.value for step in steps if step.run is not None}
    return Plan(module, steps, peak, layout, frozenset(computed - layout.places.keys()))


def _layout(module: Module, steps: Sequence[Step], ordered: bool) -> Layout:
    """Places for what steps compute; what outlives a run has memory of its own in each of them."""
    kept = {*module.outputs, *(state.output for state in module.states)}
    births = [
        Birth(
            step.value,
            None if step.run is None or step.value in kept else _bytes(step.type),
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

    def __init__(self, module: Module, types: dict[int, KernelType], ordered: bool) -> None:
        self._module = module
        self._types = types
        self._ordered = ordered
        self._bound: dict[object, Run] = {}

    def __call__(self, index: int, op: CoreOperation) -> Run:
        spec = OPS[op.opcode]
        by_id = self._module.by_id
        operands = tuple([by_id[operand].type for operand in op.operands])
        # As keys 0.0 and -0.0 are equal, which some operations tell apart.
        exact = repr(op.attributes) if _has_floats(spec) else None
        key = (op.opcode, operands, op.attributes, op.type, exact)
        found = self._bound.get(key)
        if found is None:
            found = self._bound[key] = self._bind(index, op, spec)
        return found

    def _bind(self, index: int, op: CoreOperation, spec: OpSpec) -> Run:
        if spec.primitive is None:
            raise _refused(self._module, index, "there is no kernel for it")
        inputs = tuple([self._types[operand] for operand in op.operands])
        call = Call(inputs, (self._types[op.value_id],), spec.filled(op.attributes), self._ordered)
        try:
            return PRIMITIVES[spec.primitive].bind(call)
        except (ValueError, TypeError) as error:
            raise _refused(self._module, index, str(error)) from error


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


def _peak(module: Module, dead: Sequence[tuple[int, ...]], types: dict[int, KernelType]) -> int:
    by_type = {id(type_): _bytes(type_) for type_ in types.values()}
    sizes = {value: by_type[id(type_)] for value, type_ in types.items()}
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
