"""A call bound to the types at hand: the operations of Core IR that it is, on their kernels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from nacre.base.packing import NIBBLE_TYPES
from nacre.core.aten.call import AtenCall, Elements, Number, TooLarge, ready_values
from nacre.core.builder import Builder, dtype_name
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array, Literal
from nacre.kernels.interface.call import Call, Constant, Run
from nacre.kernels.interface.call import TensorType as KernelType
from nacre.kernels.interface.runs import quietly
from nacre.kernels.registry import PRIMITIVES
from nacre.nac.program.calls import handler_of
from nacre.nac.run.limits import steps_of

_BYTE = 8  # bits
Empty = Callable[[tuple[int, ...], np.dtype[Any]], Array]  # makes arrays of arbitrary values
# Operations that only give the same elements another shape.
_RESHAPES = frozenset({"Reshape", "ExpandDims", "Squeeze"})


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of Core IR."""

    value: int
    operands: tuple[int, ...]
    run: Run | None  # None: the same elements under another shape
    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # of the array that a kernel fills
    narrow: np.dtype[Any] | None = None  # of the result, where kernels carry it in another type
    has_narrow: bool = False  # operands that kernels carry in another type


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A call ready to run on arrays of the types that it was made for."""

    steps: tuple[Step, ...]
    constants: Mapping[int, Array]
    results: tuple[int, ...]  # values
    is_list: bool  # the call gives several results
    number: Number | None  # in the place of results
    bytes: int  # that it needs beside its operands
    work: int  # steps; see `limits`
    is_for_elements: bool  # it depends on elements, not only on types
    is_for_weights: bool = False  # kernels have prepared arrays that are fixed

    def run(self, arrays: Sequence[Array], empty: Empty = np.empty) -> Any:  # noqa: ANN401 - a tensor, several, a number
        """The results, in arrays that `empty` makes; Unsupported where a kernel refuses values."""
        if self.number is not None:
            return self.number.number
        values: dict[int, Array] = {**dict(enumerate(arrays)), **self.constants}
        for step in self.steps:
            operands = [values[operand] for operand in step.operands]
            if step.run is None:
                values[step.value] = operands[0].reshape(step.shape)
                continue
            if step.has_narrow:
                operands = [_widen_nibbles(operand) for operand in operands]
            result = empty(step.shape, step.dtype)
            fault = step.run(operands, [result])
            if fault is not None and fault.is_fatal:
                raise Unsupported(fault.message)
            values[step.value] = result if step.narrow is None else result.astype(step.narrow)
        results = [values[value] for value in self.results]
        return results if self.is_list else results[0]


class _ElementWatch:
    """The elements of operands, and whether anybody asked for them."""

    def __init__(self, elements: Elements, count: int) -> None:
        self._elements = elements
        self._count = count
        self.is_used = False

    def __call__(self, value: int) -> Array | None:
        if value >= self._count:
            return None
        self.is_used = True
        return self._elements(value)


@dataclass(frozen=True, slots=True)
class TypedCall:
    """A call with types for everything in it, before any kernel is bound or any byte taken."""

    operations: tuple[CoreOperation, ...]
    types: Mapping[int, KernelType]
    results: tuple[int, ...]  # values
    is_list: bool
    number: Number | None
    bytes: int  # that it needs beside its operands
    work: int  # steps; see `limits`
    is_for_elements: bool

    def root(self, value: int) -> int:
        """The value whose memory this one is: shapes change without a copy."""
        op = self.operations[value]
        return self.root(op.operands[0]) if op.opcode in _RESHAPES else value


def type_call(
    call: str,
    arguments: Mapping[str, Any],
    arrays: Sequence[Array],
    room: int,
    elements: Elements,
) -> TypedCall:
    """A call for arguments in which `Value(i)` stands for the i-th array; Unsupported says why not.

    Of arrays only types are looked at; `elements` gives what is in one where the call asks for it.
    TooLarge where it would take more bytes than there is room for.
    """
    builder = Builder()
    for index, array in enumerate(arrays):
        _add_input(builder, index, array)
    looked = _ElementWatch(elements, len(arrays))
    handler = handler_of(call)
    result = handler(AtenCall(call, arguments, builder, looked, room))
    if isinstance(result, Number):
        return TypedCall((), {}, (), False, result, 0, 1, looked.is_used)
    results = (result,) if isinstance(result, int) else tuple(ready_values(result))
    operations = builder.module(*results).operations
    types = {op.value_id: KernelType(op.type.element, op.type.shape) for op in operations}
    computed = [op for op in operations if op.opcode not in ("Input", "ConstTensor")]
    total = sum(_needed_bytes(op, types) for op in computed)
    total += sum(_array(op).nbytes for op in operations if op.opcode == "ConstTensor")
    if total > room:
        raise TooLarge(total)
    work = sum(_work(op, types) for op in computed)
    is_list = not isinstance(result, int)
    return TypedCall(operations, types, results, is_list, None, total, work, looked.is_used)


def bind_call(call: TypedCall, arrays: Sequence[Array], fixed: Collection[int] = ()) -> BoundCall:
    """A call on its kernels.

    Arrays that are fixed are the same in every run: kernels may prepare them, as they do for the
    constants of a module.
    """
    if call.number is not None:
        return BoundCall((), {}, (), False, call.number, 0, 1, call.is_for_elements)
    operations, types = call.operations, call.types
    computed = [op for op in operations if op.opcode not in ("Input", "ConstTensor")]
    constants = {op.value_id: _array(op) for op in operations if op.opcode == "ConstTensor"}
    fixed_arrays = {index: arrays[index] for index in fixed}
    known = {value: _widen_nibbles(array) for value, array in {**fixed_arrays, **constants}.items()}
    return BoundCall(
        tuple(_step(op, types, known) for op in computed),
        constants,
        call.results,
        call.is_list,
        None,
        call.bytes,
        call.work,
        call.is_for_elements,
        any(_uses_known_operands(op) and set(fixed) & set(op.operands) for op in computed),
    )


def _add_input(builder: Builder, index: int, array: Array) -> None:
    if 0 in array.shape:
        raise Unsupported("an operand has no elements; Core IR has no empty tensors")
    builder.input(f"x{index}", element_name(array.dtype), array.shape)


@cache
def element_name(dtype: np.dtype[Any]) -> str:
    """The element type of arrays; Unsupported where Core IR has none."""
    try:
        return dtype_name(dtype)
    except ValueError:
        raise Unsupported(f"arrays of {dtype} have no element type") from None


def _array(op: CoreOperation) -> Array:
    data = op.attributes["data"]
    assert isinstance(data, Literal)
    return data.array


def _step(op: CoreOperation, types: Mapping[int, KernelType], known: Mapping[int, Array]) -> Step:
    type_ = types[op.value_id]
    run = None if op.opcode in _RESHAPES else _bind(op, types, known)
    narrow = None if type_.dtype == type_.elem.dtype else type_.elem.dtype
    has_narrow = any(types[value].elem.bits < _BYTE for value in op.operands)
    return Step(op.value_id, op.operands, run, type_.shape, type_.dtype, narrow, has_narrow)


def _widen_nibbles(array: Array) -> Array:
    """An array as kernels take it: `i4` and `u4` as whole bytes."""
    return array.astype(np.int8) if array.dtype.name in NIBBLE_TYPES else array


def _needed_bytes(op: CoreOperation, types: Mapping[int, KernelType]) -> int:
    """The bytes of a result, and of the operand with the elements around it that a window sees."""
    if op.opcode in _RESHAPES:
        return 0
    total = _bytes(types[op.value_id].dtype.itemsize, types[op.value_id].shape)
    pads = op.attributes.get("pads", ())
    if pads and op.opcode != "Pad":
        source, axes = types[op.operands[0]], len(pads) // 2
        around = [abs(pads[at]) + abs(pads[axes + at]) for at in range(axes)]
        rest = source.shape[: len(source.shape) - axes]
        wide = zip(source.shape[-axes:], around, strict=True)
        total += _bytes(source.dtype.itemsize, (*rest, *(dim + more for dim, more in wide)))
    return total


def _bytes(itemsize: int, shape: Sequence[int]) -> int:
    for dim in shape:  # in Python's integers: hostile shapes leave those of NumPy
        itemsize *= dim
    return itemsize


def _work(op: CoreOperation, types: Mapping[int, KernelType]) -> int:
    """The steps of an operation, as its kernel counts them."""
    if op.opcode in _RESHAPES:
        return 1
    spec = OPS[op.opcode]
    if spec.primitive is None:
        raise Unsupported(f"there is no kernel for `{op.opcode}`")
    inputs = tuple([types[operand] for operand in op.operands])
    call = Call(inputs, (types[op.value_id],), spec.with_defaults(op.attributes))
    return steps_of(PRIMITIVES[spec.primitive].work(call), types[op.value_id].count)


def _uses_known_operands(op: CoreOperation) -> bool:
    """Whether the kernel of an operation makes use of operands that are known."""
    name = OPS[op.opcode].primitive
    return name is not None and PRIMITIVES[name].takes_known


def _bind(op: CoreOperation, types: Mapping[int, KernelType], known: Mapping[int, Array]) -> Run:
    spec = OPS[op.opcode]
    if spec.primitive is None:
        raise Unsupported(f"there is no kernel for `{op.opcode}`")
    inputs = tuple([types[operand] for operand in op.operands])
    ready = {
        at: Constant(known[operand])
        for at, operand in enumerate(op.operands)
        if operand in known and _uses_known_operands(op)
    }
    call = Call(inputs, (types[op.value_id],), spec.with_defaults(op.attributes), known=ready)
    try:
        # What is prepared of weights may be infinite or no number.
        return quietly(PRIMITIVES[spec.primitive].bind, call)
    except (ValueError, TypeError) as error:
        raise Unsupported(str(error)) from error
