"""First stage: a module in which every operation is one that the device can do, in its precision.

The result is an ordinary module of Core IR. It is what the plan is held to: a run of the plan and
an evaluation of this module agree, for integers to the bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.compile.geometry import swap_of
from nacre.compile.lowerings import lowering_of
from nacre.compile.rules import CMP01
from nacre.core.builder import Builder
from nacre.core.canonical import canonicalise
from nacre.core.evaluation_plan import constant_array, place
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Array
from nacre.kernels.core_products import conv2d_pads

_FLOATS = frozenset(name for name, element in GRAPH_TYPES.items() if element.kind == "float")


@dataclass(frozen=True)
class Legal:
    """A legal module, which source operation each of its own comes from, and what it cost."""

    module: Module
    origins: Mapping[int, int]
    outputs: int  # how many are the model's own: the next values of states follow them
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(self.module)


def legalise(source: Module, precision: str) -> Legal:
    """The module in the operations and the precision of the device; InputError lists what is not.

    - `MatMul`, `Dot` by constant matrices and `Linear` to `Linear`, `Conv2d` to `Conv`, both with
      the bias that is added to them
    - `Relu` to `ReluNan`, the form that the device has: NaN stays NaN
    - floats, weights among them, to the precision; a constant beyond its range to its end
    """
    module = canonicalise(source)
    walk = _Walk(module, precision)
    for op in module.operations:
        walk.take(op)
    if walk.refused:
        raise InputError(walk.refused)
    kept = (*module.outputs, *(state.output for state in module.states))
    made = walk.builder.module(*(walk.value(value) for value in kept))
    return Legal(made, dict(walk.origins), len(module.outputs), tuple(walk.notes))


class _NoForm(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """An operation that has no form; the message says why."""


class _Walk:
    """Goes through a module and builds the legal one."""

    def __init__(self, module: Module, precision: str) -> None:
        self.module = module
        self.builder = Builder()
        self.ids: dict[int, int] = {}
        self.origins: dict[int, int] = {}
        self.notes: list[str] = []
        self.refused: list[Diagnostic] = []
        self._precision = precision
        self._uses = Counter(o for op in module.operations for o in op.operands)
        self._uses.update(module.outputs)
        self._index = {op.value_id: i for i, op in enumerate(module.operations)}
        sums = (self.with_bias(op) for op in module.operations)
        self._biased = {found[0].value_id for found in sums if found is not None}

    def take(self, op: CoreOperation) -> None:
        """One operation of the source."""
        if op.opcode == "Input":
            name = str(op.attributes["name"])
            self._define(op, self.builder.input(name, self._dtype(op), op.type.shape))
            if op.type.dtype not in _FLOATS:
                self._refuse(op, f"its elements are of type {op.type.dtype}, expected floats")
        elif op.value_id in self._biased or "constant" in OPS[op.opcode].traits:
            # A product that an addition completes, and constants, are made where they are used:
            # what weights look like depends on who reads them.
            return
        else:
            self._form(op)

    def _form(self, op: CoreOperation) -> None:
        if op.type.dtype not in _FLOATS:
            self._refuse(op, f"its elements are of type {op.type.dtype}, expected floats")
            return
        try:
            self._define(op, _FORMS.get(op.opcode, _as_it_is)(self, op))
        except _NoForm as reason:
            self._refuse(op, str(reason))

    def _define(self, op: CoreOperation, value: int) -> None:
        self.ids[op.value_id] = value
        self.origins[value] = op.value_id

    def _dtype(self, op: CoreOperation) -> str:
        return self._precision if op.type.dtype in _FLOATS else op.type.dtype

    def _refuse(self, op: CoreOperation, reason: str) -> None:
        """Note an operation without a form, and go on with a value that stands in for its own."""
        where = place(self.module, self._index[op.value_id])
        message = f"`{op.opcode}` %{op.value_id} has no form in NEM: {reason}"
        self.refused.append(CMP01.at(where, message))
        name = f"refused {op.value_id}"
        self.ids[op.value_id] = self.builder.input(name, self._dtype(op), op.type.shape)

    def value(self, source: int) -> int:
        """The legal value of a source value; a constant is made."""
        if source not in self.ids:
            op = self.module.by_id[source]
            array = self.constant(source)
            assert array is not None
            self._define(op, self.add_constant(op, array))
        return self.ids[source]

    def constant(self, source: int) -> Array | None:
        """The elements of a constant of the source; None where it is none."""
        return constant_array(self.module.by_id[source])

    def add_constant(self, op: CoreOperation, array: Array) -> int:
        """A constant in the precision, moved inside its range where it lies beyond."""
        dtype = self._dtype(op)
        if dtype == op.type.dtype:
            return self.builder.constant(array, dtype)
        element = GRAPH_TYPES[dtype]
        beyond = np.isfinite(array) & (np.abs(array) > element.largest_finite)
        if beyond.any():
            count = int(beyond.sum())
            self.notes.append(
                f"{count} elements of constant %{op.value_id} lie beyond {dtype}; "
                f"they are held at {element.largest_finite:g}"
            )
            array = np.clip(array, -element.largest_finite, element.largest_finite)
        lost = int(((array != 0) & (array.astype(element.dtype) == 0)).sum())
        if lost:
            self.notes.append(f"{lost} elements of constant %{op.value_id} are 0 in {dtype}")
        return self.builder.constant(array.astype(element.dtype), dtype)

    def only_use(self, source: int) -> bool:
        """Whether a value has one use."""
        return self._uses[source] == 1

    def with_bias(self, op: CoreOperation) -> tuple[CoreOperation, CoreOperation] | None:
        """The product and the constant of an addition that can be its bias."""
        if op.opcode != "BinOp" or op.attributes["op"] != "Add":
            return None
        for at, other in (op.operands, op.operands[::-1]):
            product, bias = self.module.by_id[at], self.module.by_id[other]
            is_product = product.opcode in _PRODUCTS and self.only_use(at)
            if is_product and self.constant(other) is not None and _is_bias(bias, product):
                return product, bias
        return None


def _is_bias(bias: CoreOperation, product: CoreOperation) -> bool:
    """Whether a constant has one element for each last axis of a product, or one for all."""
    shape, channels = bias.type.shape, product.type.shape[-1:]
    return len(shape) <= product.type.rank and shape[-1:] in (channels, (1,), ()) and (
        all(dim == 1 for dim in shape[:-1])
    )  # fmt: skip


def _product(walk: _Walk, op: CoreOperation, bias: CoreOperation | None = None) -> int:
    """`Linear` or `Conv` for a product of either kind."""
    form = _convolution if op.opcode in ("Conv2d", "Conv") else _linear
    return form(walk, op, bias)


def _linear(walk: _Walk, op: CoreOperation, bias: CoreOperation | None) -> int:
    weights = walk.constant(op.operands[1])
    if weights is None:
        raise _NoForm("both operands come from outside, expected constant weights")
    if weights.ndim != 2 or op.type.rank == 0:
        raise _NoForm(f"the weights have {weights.ndim} axes, expected 2")
    matrix = weights if op.opcode == "Linear" else weights.T  # [out, in]
    given = [walk.value(op.operands[0]), walk.add_constant(op, np.ascontiguousarray(matrix))]
    return walk.builder.add("Linear", *given, *_bias(walk, op, bias, 2, matrix.shape[0]))


def _bias(
    walk: _Walk, op: CoreOperation, bias: CoreOperation | None, own: int, channels: int
) -> tuple[int, ...]:
    """The bias of a product: its own operand, and what is added to it."""
    terms = [walk.constant(op.operands[own])] if len(op.operands) > own else []
    terms += [walk.constant(bias.value_id)] if bias is not None else []
    if not terms:
        return ()
    total = sum(np.broadcast_to(np.ravel(t), (channels,)) for t in terms if t is not None)
    return (walk.add_constant(op, np.asarray(total)),)


def _convolution(walk: _Walk, op: CoreOperation, bias: CoreOperation | None) -> int:
    weights = walk.constant(op.operands[1])
    if weights is None:
        raise _NoForm("the filter comes from outside, expected a constant")
    if op.type.rank != 4:
        raise _NoForm(f"it has {op.type.rank - 2} spatial axes, expected 2")
    filled = OPS[op.opcode].filled(op.attributes)
    if op.opcode == "Conv2d":
        x = walk.module.by_id[op.operands[0]].type.shape
        pads = conv2d_pads(x, weights.shape, filled)
        assert pads is not None  # the module is verified
        (top, bottom), (left, right) = pads
        around = (top, left, bottom, right)
        given = {"strides": filled["strides"], "pads": around, "layout": "NHWC"}
    else:
        given = dict(op.attributes)
    x_value = walk.value(op.operands[0])
    is_first = given.get("layout", "NCHW") == "NCHW"
    added = _bias(walk, op, bias, 2, weights.shape[0 if is_first else -1])
    if not is_first and _is_pointwise(weights, given):
        matrix = np.ascontiguousarray(weights[0, 0].T)
        return walk.builder.add("Linear", x_value, walk.add_constant(op, matrix), *added)
    return walk.builder.add("Conv", x_value, walk.add_constant(op, weights), *added, **given)


def _is_pointwise(weights: Array, given: Mapping[str, Any]) -> bool:
    """Whether a convolution multiplies each pixel by a matrix: any rows make a tile then."""
    strides, pads = given.get("strides") or (1, 1), given.get("pads") or (0,)
    is_single = weights.shape[:2] == (1, 1) and given.get("groups", 1) == 1
    return is_single and set(strides) == {1} and not any(pads)


def _sum(walk: _Walk, op: CoreOperation) -> int:
    """An addition; of a constant to a product it is that product's bias."""
    found = walk.with_bias(op)
    return _as_it_is(walk, op) if found is None else _product(walk, *found)


def _relu(walk: _Walk, op: CoreOperation) -> int:
    return walk.builder.add("ReluNan", walk.value(op.operands[0]))


def _transpose(walk: _Walk, op: CoreOperation) -> int:
    """`Transpose` that exchanges two runs of axes; one that moves nothing is a `Reshape`."""
    x, order = walk.value(op.operands[0]), op.attributes["permutation"]
    shape = walk.builder.type_of(x).shape
    kept = [axis for axis in order if shape[axis] != 1]
    if kept == sorted(kept):
        return walk.builder.add("Reshape", x, new_shape=op.type.shape)
    if swap_of(shape, order) is None:
        raise _NoForm(f"it moves more than two runs of axes: {list(order)}")
    return walk.builder.add("Transpose", x, permutation=order)


def _clip(walk: _Walk, op: CoreOperation) -> int:
    """`Clip` with both bounds: the device's own has no infinities."""
    x = walk.value(op.operands[0])
    filled = OPS["Clip"].filled(op.attributes)
    low, high = float(filled["min"]), float(filled["max"])
    if low == -np.inf and high == np.inf:
        return x
    most = GRAPH_TYPES[walk.builder.type_of(x).dtype].largest_finite
    if max(abs(low), abs(high)) == np.inf:
        walk.notes.append(f"`Clip` %{op.value_id} also holds infinities at {most:g}")
    return walk.builder.add("Clip", x, min=max(low, -most), max=min(high, most))


def _gelu(walk: _Walk, op: CoreOperation) -> int:
    if op.attributes.get("approximate", "none") != "none":
        raise _NoForm("the device computes `Gelu` by the error function, not by `tanh`")
    return _as_it_is(walk, op)


def _leaky_relu(walk: _Walk, op: CoreOperation) -> int:
    if not np.isfinite(op.attributes.get("alpha", 0.01)):
        raise _NoForm("`alpha` is not finite")
    return _as_it_is(walk, op)


def _as_it_is(walk: _Walk, op: CoreOperation) -> int:
    row = lowering_of(op)
    if row is None:
        raise _NoForm("the compiler knows none yet")
    if row.kind == "map":
        shapes = {walk.module.by_id[o].type.shape for o in op.operands}
        if shapes != {op.type.shape}:
            raise _NoForm("its operands have different shapes; the device broadcasts none")
        if any(walk.constant(o) is not None for o in op.operands):
            raise _NoForm("one of its operands is a constant")
    values = [walk.value(o) for o in op.operands]
    return walk.builder.add(op.opcode, *values, **op.attributes)


_PRODUCTS = frozenset({"MatMul", "Dot", "Linear", "Conv2d", "Conv"})
_Form = Callable[[_Walk, CoreOperation], int]
_FORMS: Mapping[str, _Form] = {
    **dict.fromkeys(_PRODUCTS, _product),
    "BinOp": _sum,
    "Relu": _relu,
    "Clip": _clip,
    "Transpose": _transpose,
    "Gelu": _gelu,
    "LeakyRelu": _leaky_relu,
}
