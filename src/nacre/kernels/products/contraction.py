"""A sum of products from stored operands to stored output, whatever the shape of the sum.

`linear.py` and `convolution.py` say which products make up a sum; here is what becomes of them in
each kind of number. Integers: exact sums in i32, a bias in units of the accumulator, requantised.
Where scales vary along the sum, one exact sum for each part with a scale of its own, scaled and
added in f32 in ascending order; a bias then counts in units of those scales that do not vary, and
comes after the parts. Floats: f32, a bias after the sum, rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np

from nacre.kernels.interface.call import Array, Call, Fault, Run, TensorType
from nacre.kernels.interface.runs import present, quiet, widening
from nacre.kernels.interface.shapes import Dims, pad
from nacre.kernels.numbers.halves import store_floats
from nacre.kernels.numbers.numbers import Float32, widen_to_f32
from nacre.kernels.numbers.quantization import dequantizer
from nacre.kernels.numbers.requantize import (
    Store,
    accumulate,
    biased_reals,
    real_quantizer,
    requantizer,
    saturating_store,
)
from nacre.kernels.products.products import (
    Plan,
    Product,
    float_product,
    mark_lost,
    ordered_product,
    plan,
    reach_of_type,
    reach_of_values,
    same_nan,
    subtract,
    zero_points,
)

Taken = tuple[slice, ...]  # a part of every axis that is summed over
ScaleOf = Callable[[Taken], Float32]  # the scale of a part, to be broadcast against the output


@dataclass(frozen=True, eq=False)
class Contraction:
    """One use of a kernel that sums products over axes that its operands share."""

    call: Call  # inputs X, W and perhaps a bias
    pads: Dims | None  # of X, all beginnings, then all ends; a padded element is the real value 0
    parts: tuple[Taken, ...]  # of the sum, in order; one where no scale varies along it
    x_varies: bool  # whether the scale of X differs between parts
    w_varies: bool
    x_scale: ScaleOf
    w_scale: ScaleOf
    # Operands ready to be multiplied, a part of the sum, and how to multiply matrices.
    contract: Callable[[Array, Array, Taken, Product], Array]
    uses_blas: bool = True

    @property
    def depth(self) -> int:
        """How many products the longest part has."""
        return max(prod(len(range(a.start, a.stop)) for a in part) for part in self.parts)

    @property
    def bias(self) -> TensorType | None:
        """The bias, where there is one."""
        return self.call.input(2) if self.call.has_input(2) else None


def starts_of_groups(size: int, group_size: int) -> set[int]:
    """Where groups of neighbours along an axis begin."""
    return set(range(0, size, group_size))


def slices(starts: Iterable[int], size: int) -> list[slice]:
    """An axis cut where its parts begin."""
    return [slice(begin, end) for begin, end in pairwise([*sorted(starts), size])]


def bind_contraction(use: Contraction) -> Run:
    """The run of a kernel: floats as soon as one operand is a float, else integers."""
    operands = (*use.call.inputs, *use.call.outputs)
    if not all(t is None or t.elem.is_integer for t in operands):
        return _float_run(use)
    return _grouped_run(use) if use.x_varies or use.w_varies else _integer_run(use)


def _integer_run(use: Contraction) -> Run:
    sums_of = _sums(use)
    part = use.parts[0]
    scale = _output_scale(use, part)
    type_ = use.call.output
    store = saturating_store(type_) if scale is None else requantizer(type_, scale)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        bias = inputs[2] if len(inputs) > 2 else None
        ((sums, bound),) = sums_of(inputs)
        if scale is not None and sums.dtype == np.float32:
            reals = sums if bias is None else biased_reals(sums, bias)
            if reals is not None:
                store(reals, outputs[0])
                return None
        values, fault = accumulate(sums, bias, bound)
        store(values, outputs[0])
        return fault

    return run


def _output_scale(use: Contraction, part: Taken) -> Float32 | None:
    """The f32 value of sx * sw / sy, as onnxruntime has it; None where one is not given."""
    x, w, y = use.call.input(0).quant, use.call.input(1).quant, use.call.output.quant
    if x is None or w is None or y is None:
        return None
    with np.errstate(all="ignore"):
        scale: Float32 = (
            use.x_scale(part) * use.w_scale(part) / y.broadcast_parameters(use.call.output.shape)[0]
        )
    return scale


def _grouped_run(use: Contraction) -> Run:
    sums_of = _sums(use)
    with np.errstate(all="ignore"):
        scales = [use.x_scale(part) * use.w_scale(part) for part in use.parts]
    unit = _bias_unit(use)
    store = real_quantizer(use.call.output)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        bias = inputs[2] if len(inputs) > 2 else None
        total = np.zeros(use.call.output.shape, np.float32)
        first: Fault | None = None
        for (sums, bound), scale in zip(sums_of(inputs), scales, strict=True):
            is_narrow = sums.dtype == np.float32  # and so below 2^24
            values, fault = (sums, None) if is_narrow else accumulate(sums, None, bound)
            first = first or fault
            total += values.astype(np.float32, copy=False) * scale
        if bias is not None:
            total += bias.astype(np.float32) * unit
        store(total, outputs[0])
        return first

    return quiet(run)


def _bias_unit(use: Contraction) -> Float32:
    """What a bias of 1 is worth: the scales that are the same for the whole sum."""
    unit = np.float32(1)
    part = use.parts[0]
    x_unit = unit if use.x_varies else use.x_scale(part)
    w_unit = unit if use.w_varies else use.w_scale(part)
    with np.errstate(all="ignore"):
        return np.asarray(x_unit * w_unit, np.float32)


def _sums(
    use: Contraction,
) -> Callable[[Sequence[Array | None]], Iterable[tuple[Array, int]]]:
    """The function from operands to the exact sums of every part and a bound on them."""
    x_type, w_type = use.call.input(0), use.call.input(1)
    read_x, read_w = _integer_reader(x_type, use.pads), _integer_reader(w_type, None)
    depth = use.depth
    shortest = {} if use.uses_blas else {"shortest_chunk": depth}
    by_type = plan(depth, reach_of_type(x_type), reach_of_type(w_type), **shortest)
    # Nothing to gain from looking at values: the narrow type, and no sum can wrap.
    is_settled = by_type.dtype == np.float32 and by_type.result != np.int64

    def run(inputs: Sequence[Array | None]) -> Iterable[tuple[Array, int]]:
        x, w = present(inputs[0]), present(inputs[1])
        chosen = by_type
        if not is_settled:
            reaches = reach_of_values(x_type, x), reach_of_values(w_type, w)
            chosen = plan(depth, *reaches, **shortest)
        a, b = read_x(x, chosen.dtype), read_w(w, chosen.dtype)
        return ((_sums_of_part(use, a, b, part, chosen), chosen.bound) for part in use.parts)

    return run


def _sums_of_part(use: Contraction, a: Array, b: Array, part: Taken, chosen: Plan) -> Array:
    sums = use.contract(a, b, part, chosen.product).astype(chosen.result, copy=False)
    if not chosen.may_leave_i64:
        return sums
    floats = a.astype(np.float64), b.astype(np.float64)
    return mark_lost(sums, use.contract(*floats, part, np.matmul))


def _integer_reader(
    type_: TensorType, pads: Dims | None
) -> Callable[[Array, np.dtype[np.generic]], Array]:
    """Stored integers less their zero points, padded with zeros, in the type of a plan."""
    zero = zero_points(type_)

    def read(stored: Array, dtype: np.dtype[np.generic]) -> Array:
        if zero is None:
            return stored.astype(dtype, order="C")
        values = np.empty(stored.shape, dtype)
        subtract(values, stored, zero)
        return values

    if pads is None:
        return read
    shape, inner = pad(type_.shape, pads), _inner(type_.shape, pads)

    def read_padded(stored: Array, dtype: np.dtype[np.generic]) -> Array:
        values = np.zeros(shape, dtype)
        subtract(values[inner], stored, zero)
        return values

    return read_padded


def _inner(shape: Dims, pads: Dims) -> tuple[slice, ...]:
    return tuple(
        slice(begin, begin + size) for begin, size in zip(pads[: len(shape)], shape, strict=True)
    )


def _float_run(use: Contraction) -> Run:
    is_ordered = use.call.ordered
    product = ordered_product if is_ordered else float_product
    read_x, read_w = _padded_reals(use.call.input(0), use.pads), _real_reader(use.call.input(1))
    read_bias = _real_reader(use.bias) if use.bias is not None else None
    whole = tuple(slice(p[0].start, p[-1].stop) for p in zip(*use.parts, strict=True))
    store = _float_store(use.call.output)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        x, w = present(inputs[0]), present(inputs[1])
        total = use.contract(read_x(x), read_w(w), whole, product)
        if read_bias is not None:
            total += read_bias(present(inputs[2]))
        store(same_nan(total) if is_ordered else total, outputs[0])
        return None

    return widening(quiet(run))


def _float_store(type_: TensorType) -> Store:
    return real_quantizer(type_) if type_.elem.is_integer else store_floats


def _real_reader(type_: TensorType) -> Callable[[Array], Float32]:
    """Floats as f32; integers beside floats are the real values that they stand for."""
    if not type_.elem.is_integer:
        return widen_to_f32
    if type_.quant is not None:
        return dequantizer(type_)
    return lambda stored: stored.astype(np.float32)


def _padded_reals(type_: TensorType, pads: Dims | None) -> Callable[[Array], Float32]:
    reals = _real_reader(type_)
    if pads is None:
        return reals
    shape, inner = pad(type_.shape, pads), _inner(type_.shape, pads)

    def read(stored: Array) -> Float32:
        values = np.zeros(shape, np.float32)
        values[inner] = reals(stored)
        return values

    return read
