"""Chains of operations that a run computes in one step, with the same bits.

A table has the chains as patterns, each with the kernel that does its work. What is found in a
module leaves everything as it is that others look at: a value inside of a chain is left out only
where nobody outside of the chain uses it.

Integers of dynamically quantised models are carried as floats where f32 holds every sum of theirs:
a convolution of them is one of floats, and needs no copies in other types.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from types import MappingProxyType

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Array
from nacre.kernels.interface.call import Call, Constant, Fault, Run
from nacre.kernels.interface.call import TensorType as KernelType
from nacre.kernels.interface.scratch import scratch
from nacre.kernels.products.graph_products import IntegerWeights
from nacre.kernels.products.products import F32_EXACT
from nacre.kernels.quantised.graph_dynamic import HIGHEST, MOVING, ROUNDING, centring_run
from nacre.kernels.registry import PRIMITIVES

_F32 = GRAPH_TYPES["f32"]


@dataclass(frozen=True, eq=False)
class _Pattern:
    """A value in a pattern: any, or one that such an operation makes of such operands.

    A part that stands in a pattern twice is the same value in both places.
    """

    opcode: str = ""  # empty: any value
    operands: tuple[_Pattern, ...] = ()
    dtype: str = ""  # of the value; empty: any
    attributes: Mapping[str, object] = field(default_factory=dict)


def _pattern(opcode: str, *operands: _Pattern, dtype: str, **attributes: object) -> _Pattern:
    return _Pattern(opcode, operands, dtype, attributes)


_X = _Pattern(dtype="f32")
_SCALE = _pattern("DynamicQuantizeScale", _X, dtype="f32")
_ZERO = _pattern("DynamicQuantizeZero", _X, dtype="u8")
_BYTES = _pattern("Quantize", _X, _SCALE, _ZERO, dtype="u8")
_WIDE, _WIDE_ZERO = _pattern("Cast", _BYTES, dtype="i32"), _pattern("Cast", _ZERO, dtype="i32")
_CENTRED = _pattern("BinOp", _WIDE, _WIDE_ZERO, dtype="i32", op="Sub")

_GIVEN, _WEIGHT, _MORE = (_Pattern(dtype="i32") for _ in range(3))
_PRODUCT = _pattern("Conv", _GIVEN, _WEIGHT, dtype="i32", layout="NCHW")
_SUM = _pattern("BinOp", _PRODUCT, _MORE, dtype="i32", op="Add")
_SUM_TURNED = _pattern("BinOp", _MORE, _PRODUCT, dtype="i32", op="Add")
# What becomes of a product that goes by floats, and the kernel that does it.
_ENDS: Mapping[_Pattern, tuple[tuple[_Pattern, ...], Run]] = MappingProxyType(
    {
        _pattern("Cast", _PRODUCT, dtype="f32"): ((_PRODUCT,), ROUNDING),
        _pattern("Cast", _SUM, dtype="f32"): ((_PRODUCT, _MORE), MOVING),
        _pattern("Cast", _SUM_TURNED, dtype="f32"): ((_PRODUCT, _MORE), MOVING),
    }
)


@dataclass(frozen=True)
class FusedStep:
    """A step that does the work of several operations, or of one in another type."""

    index: int  # of the operation in whose place it runs
    operands: tuple[int, ...]
    results: Mapping[int, KernelType]  # as they are carried
    run: Run
    left_out: frozenset[int]  # values that are never made
    in_place_operands: tuple[int, ...] = ()  # operands over which it may write its result


@dataclass(frozen=True)
class _Match:
    """Where a pattern stands in a module: the value of every part."""

    values: Mapping[_Pattern, int]
    produced: frozenset[int]  # those that its operations make


class _Finder:
    """Looks for patterns in a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.index = {op.value_id: at for at, op in enumerate(module.operations)}
        self.users: dict[int, list[int]] = defaultdict(list)
        for op in module.operations:
            for operand in op.operands:
                self.users[operand].append(op.value_id)
        self.kept = {*module.outputs, *(state.output for state in module.states)}

    def match(self, pattern: _Pattern, value: int, results: Collection[_Pattern]) -> _Match | None:
        """A pattern that ends in a value; nobody outside uses what it makes but its results."""
        values: dict[_Pattern, int] = {}
        if not self._fits(pattern, value, values):
            return None
        produced = {value for part, value in values.items() if part.opcode}
        shown = {values[part] for part in results}
        inside = produced - shown
        if inside & self.kept or any(u not in produced for v in inside for u in self.users[v]):
            return None
        return _Match(values, frozenset(produced))

    def _fits(self, part: _Pattern, value: int, values: dict[_Pattern, int]) -> bool:
        if part in values:
            return values[part] == value
        op = self.module.by_id[value]
        values[part] = value
        if part.dtype not in ("", op.type.dtype):
            return False
        if not part.opcode:
            return True
        if op.opcode != part.opcode or len(op.operands) != len(part.operands):
            return False
        filled = OPS[op.opcode].with_defaults(op.attributes)
        if any(filled[name] != wanted for name, wanted in part.attributes.items()):
            return False
        pairs = zip(part.operands, op.operands, strict=True)
        return all(self._fits(inner, operand, values) for inner, operand in pairs)


@dataclass(frozen=True)
class Weights:
    """The constants of a module as a plan has them."""

    constants: Mapping[int, Array]
    zeros: Mapping[int, Array | None]  # of those that are stored less their zero points
    widened: Collection[int]  # those of which a run may keep floats


def find_fused_steps(module: Module, weights: Weights) -> list[FusedStep]:
    """The steps that chains in a module come to."""
    if not any(op.opcode == _SCALE.opcode for op in module.operations):
        return []
    finder = _Finder(module)
    centred = dict(_centered_values(finder))
    ends = dict(_finished_products(finder, centred, weights))
    by_floats = {
        value
        for value in centred
        if value not in finder.kept and ends.keys() >= set(finder.users[value])
    }
    steps = [_fused_centring(finder, match, value in by_floats) for value, match in centred.items()]
    for product, (end, match) in ends.items():
        if match.values[_GIVEN] in by_floats:
            steps.append(_fused_product(finder, module.by_id[product], weights))
            steps.append(_fused_ending(finder, end, match))
    return steps


def _centered_values(finder: _Finder) -> Iterator[tuple[int, _Match]]:
    """Values that are quantised and centred, and how; no operation is part of two."""
    taken = set[int]()
    for op in finder.module.operations:
        if op.opcode == _CENTRED.opcode:
            match = finder.match(_CENTRED, op.value_id, (_SCALE, _CENTRED))
            if match is not None and taken.isdisjoint(match.produced):
                taken |= match.produced
                yield op.value_id, match


def _finished_products(
    finder: _Finder, centred: Collection[int], weights: Weights
) -> Iterator[tuple[int, tuple[_Pattern, _Match]]]:
    """Products of centred values whose sums f32 holds, and how they end in f32."""
    for op in finder.module.operations:
        for end in _ENDS if op.opcode == "Cast" else ():
            match = finder.match(end, op.value_id, (end,))
            if match is None or match.values[_GIVEN] not in centred:
                continue
            product = finder.module.by_id[match.values[_PRODUCT]]
            if product.type.shape == op.type.shape and _is_exact(product, weights):
                yield product.value_id, (end, match)
                break  # a sum of two products is the end of one of them


def _is_exact(product: CoreOperation, weights: Weights) -> bool:
    """Whether f32 holds every sum of a product of centred bytes, in whatever order it is taken."""
    known = _known_weight(product, weights)
    if known is None:
        return False
    extent = IntegerWeights.of(
        replace(known, may_be_widened=False), prod(known.stored.shape[1:])
    ).extent
    return HIGHEST * extent.length <= F32_EXACT


def _known_weight(product: CoreOperation, weights: Weights) -> Constant | None:
    weight = product.operands[1]
    if weight not in weights.constants:
        return None
    may_be_widened, zero = weight in weights.widened, weights.zeros.get(weight)
    return Constant(weights.constants[weight], may_be_widened, zero)


def _fused_centring(finder: _Finder, match: _Match, is_float: bool) -> FusedStep:
    scale, centred = match.values[_SCALE], match.values[_CENTRED]
    results = {value: _kernel_type(finder, value) for value in (scale, centred)}
    if is_float:
        results[centred] = _as_float(finder, centred)
    return FusedStep(
        min(finder.index[value] for value in match.produced),  # it needs nothing but x
        (match.values[_X],),
        results,
        centring_run(results[centred].dtype),
        match.produced - results.keys(),
    )


def _fused_product(finder: _Finder, op: CoreOperation, weights: Weights) -> FusedStep:
    """A product of integers, each of them in f32; weights that may be widened are kept so."""
    known = _known_weight(op, weights)
    assert known is not None
    x, y = (_as_float(finder, value) for value in (op.operands[0], op.value_id))
    types = (x, KernelType(_F32, known.stored.shape))
    attributes = OPS[op.opcode].with_defaults(op.attributes)
    bind = PRIMITIVES[OPS[op.opcode].primitive or ""].bind
    if known.may_be_widened:
        floats = known.values(np.dtype(np.float32))
        run = bind(Call(types, (y,), attributes, known={1: Constant(floats)}))
        given = _with_weights(run, lambda: floats)
    else:
        given = _with_weights(bind(Call(types, (y,), attributes)), partial(_weights_in_f32, known))
    index = finder.index[op.value_id]
    return FusedStep(index, op.operands[:1], {op.value_id: y}, given, frozenset())


def _weights_in_f32(known: Constant) -> Array:
    """Weights in f32, until others are asked for."""
    room = scratch("weights", known.stored.shape, np.dtype(np.float32))
    np.copyto(room, known.stored, casting="unsafe")
    return room if known.zero is None else np.subtract(room, known.zero.astype("f4"), out=room)


def _with_weights(run: Run, weights: Callable[[], Array]) -> Run:
    """A run that is given its weights too."""

    def run_with_weights(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        return run([inputs[0], weights()], outputs)

    return run_with_weights


def _fused_ending(finder: _Finder, end: _Pattern, match: _Match) -> FusedStep:
    parts, run = _ENDS[end]
    value, product = match.values[end], match.values[_PRODUCT]
    return FusedStep(
        finder.index[value],
        tuple(match.values[part] for part in parts),
        {value: _kernel_type(finder, value)},
        run,
        match.produced - {value, product},
        (product,),
    )


def _kernel_type(finder: _Finder, value: int) -> KernelType:
    type_ = finder.module.by_id[value].type
    return KernelType(type_.element, type_.shape)


def _as_float(finder: _Finder, value: int) -> KernelType:
    return KernelType(_F32, finder.module.by_id[value].type.shape)
