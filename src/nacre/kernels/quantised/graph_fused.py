"""Operations on stored integers whose scales are attributes: the kernels of NEM under other names.

Results have the same bits as NEM's `conv2d`, `gemm`, `add`, `maxpool` and so on, which see the
operands in their own layout: views around them, no copies. Of a pooling whose two sides stand for
different reals, the elements that were picked are quantised once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.kernels.elementwise.elementwise import ELEMENTWISE
from nacre.kernels.interface.call import (
    Array,
    Attributes,
    Call,
    Fault,
    Primitive,
    Quantization,
    Run,
    Work,
)
from nacre.kernels.interface.call import TensorType as Type
from nacre.kernels.interface.fitting import Fitting
from nacre.kernels.interface.graph_runs import bind_at_first_run, with_dense_output
from nacre.kernels.interface.runs import present
from nacre.kernels.interface.shapes import Dims, pad
from nacre.kernels.movement.padding import bind_pad
from nacre.kernels.movement.views import moves_outputs
from nacre.kernels.numbers.numbers import saturate_to
from nacre.kernels.numbers.quantization import dequantizer, per_tensor, quantizer
from nacre.kernels.products.linear import LINEAR
from nacre.kernels.quantised.graph_fused_fit import (
    fit_qbinop,
    fit_qconv,
    fit_qlinear,
    fit_qpool,
    spatial_of,
)
from nacre.kernels.windows.convolution import CONVOLUTION
from nacre.kernels.windows.pooling import POOLING

_NEM: Mapping[str, Primitive] = MappingProxyType(
    {row.name: row for row in (*CONVOLUTION, *LINEAR, *ELEMENTWISE, *POOLING)}
)
# The zero points of each operand, whatever it is called in an operation.
_ZEROS = (("x_zero", "a_zero"), ("w_zeros", "b_zero"), ())
_BINARY: Mapping[str, str] = MappingProxyType(
    {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Min": "min", "Max": "max"}
)
_POOLS: Mapping[str, str] = MappingProxyType({"Max": "maxpool", "Avg": "avgpool"})

Seen = Callable[[Array], Array]  # the same memory under another shape


def fused_problem(names: Sequence[str], attributes: Attributes) -> str | None:
    """Which operand is no integer, or has a zero point outside of its type; None where none is.

    A bias, which comes third, has no zero point.
    """
    for index, name in enumerate(names):
        elem = GRAPH_TYPES.get(name)
        if elem is None:
            continue
        if not elem.is_integer:
            return f"operand {index} has the type `{name}`, expected integers"
        for attribute in _ZEROS[index]:
            for zero in _as_list(attributes.get(attribute, 0)):
                if not elem.lowest <= zero <= elem.highest:
                    return f"`{attribute}` has {zero}, expected a value of `{name}`"
    return None


def _as_list(value: int | Sequence[int]) -> Sequence[int]:
    return (value,) if isinstance(value, int) else value


def _refuse_floats(bind: Callable[[Call], Run]) -> Callable[[Call], Run]:
    """Refuse floats at once, and bind the rest when it runs first."""
    late = bind_at_first_run(bind)

    def bind_checked(call: Call) -> Run:
        names = [type_.elem.name for type_ in call.inputs if type_ is not None]
        problem = fused_problem(names, call.attributes)
        if problem is not None:
            raise ValueError(problem)
        return late(call)

    return bind_checked


def _tensor_quantization(attributes: Attributes, side: str) -> Quantization:
    return per_tensor(attributes[f"{side}_scale"], attributes[f"{side}_zero"])


def _of_weights(attributes: Attributes, axis: int) -> Quantization:
    """One scale, or one for each part of an axis; a list of zero points may be left out."""
    scales = np.array(attributes["w_scales"], np.float32)
    zeros = np.array(attributes["w_zeros"] or (0,), np.int32)
    if scales.size == zeros.size == 1:
        return Quantization(scales, zeros)
    count = max(scales.size, zeros.size)
    return Quantization(np.resize(scales, count), np.resize(zeros, count), axis)


def _run_on_views(run: Run, *views: Seen) -> Run:
    """A run that sees its operands, and by the last view its output, in other shapes."""

    def run_seen(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        operands = [view(present(x)) for view, x in zip(views, inputs, strict=False)]
        return run(operands, [views[-1](outputs[0])])

    return run_seen


def _place_faults(run: Run, place: Callable[[Dims], Dims]) -> Run:
    """A run whose faults say where they are in the output's own shape."""

    def run_placed(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        fault = run(inputs, outputs)
        if fault is None or fault.position is None:
            return fault
        return replace(fault, position=place(fault.position))

    return run_placed


def _unchanged(array: Array) -> Array:
    return array


def _cache_dense(view: Seen) -> Seen:
    """A view that is made dense once for a constant: what comes again and cannot be written to."""
    last: list[tuple[Array, Array]] = []

    def see(array: Array) -> Array:
        if array.flags.writeable:
            return view(array)
        found = last[0] if last else None
        if found is None or found[0] is not array:
            found = array, np.ascontiguousarray(view(array))
            last[:] = [found]
        return found[1]

    return see


def _transpose_by(order: Dims) -> Seen:
    return lambda array: array.transpose(order)


def _reshape_to(*shape: int) -> Seen:
    return lambda array: array.reshape(shape)


def _channels_last_order(rank: int) -> Dims:
    """[N, C, spatial..] as [N, spatial.., C]."""
    return (0, *range(2, rank), 1)


def _weights_last(rank: int) -> Dims:
    """[Cout, Cin / groups, window..] as [window.., Cin / groups, Cout]."""
    return (*range(2, rank), 1, 0)


def _permute_dims(dims: Dims, order: Dims) -> Dims:
    return tuple(dims[axis] for axis in order)


def _orders(attributes: Attributes, rank: int) -> tuple[Dims, Dims]:
    """How tensor and weights are turned into NEM's layout."""
    whole = tuple(range(rank))
    is_last = attributes["layout"] == "NHWC"
    return (whole, whole) if is_last else (_channels_last_order(rank), _weights_last(rank))


def _qconv(call: Call) -> Run:
    x, w, y = call.input(0), call.input(1), call.output
    rank = len(x.shape)
    whole = range(rank)
    x_order, w_order = _orders(call.attributes, rank)
    inner = Call(
        (
            Type(
                x.elem, _permute_dims(x.shape, x_order), _tensor_quantization(call.attributes, "x")
            ),
            Type(w.elem, _permute_dims(w.shape, w_order), _of_weights(call.attributes, rank - 1)),
            *call.inputs[2:],
        ),
        (
            Type(
                y.elem, _permute_dims(y.shape, x_order), _tensor_quantization(call.attributes, "y")
            ),
        ),
        {**spatial_of(call.attributes, rank - 2), "groups": call.attributes["groups"]},
    )
    run = _place_faults(
        _NEM["conv2d"].bind(inner), lambda at: tuple(at[x_order.index(i)] for i in whole)
    )
    return _run_on_views(
        run,
        _transpose_by(x_order),
        _cache_dense(_transpose_by(w_order)),
        _unchanged,
        _transpose_by(x_order),
    )


def _qlinear(call: Call) -> Run:
    x, w, y = call.input(0), call.input(1), call.output
    width, depth = w.shape
    rows = prod(x.shape[:-1])
    inner = Call(
        (
            Type(x.elem, (rows, depth), _tensor_quantization(call.attributes, "x")),
            Type(w.elem, (depth, width), _of_weights(call.attributes, 1)),
            *call.inputs[2:],
        ),
        (Type(y.elem, (rows, width), _tensor_quantization(call.attributes, "y")),),
    )
    front = x.shape[:-1]
    run = _place_faults(_NEM["gemm"].bind(inner), lambda at: (*_position_of(at[0], front), at[1]))
    views = (
        _reshape_to(rows, depth),
        _cache_dense(np.transpose),
        _unchanged,
        _reshape_to(rows, width),
    )
    return with_dense_output(_run_on_views(run, *views))


def _position_of(number: int, dims: Dims) -> Dims:
    """Where an element of that number stands, in row-major order."""
    return tuple(int(at) for at in np.unravel_index(number, dims))


def _qbinop(call: Call) -> Run:
    sides = [
        replace(call.input(at), quant=_tensor_quantization(call.attributes, s))
        for at, s in enumerate("ab")
    ]
    result = replace(call.output, quant=_tensor_quantization(call.attributes, "y"))
    return _NEM[_BINARY[call.attributes["op"]]].bind(Call(tuple(sides), (result,)))


def _qpool(call: Call) -> Run:
    given, rank = call.attributes, len(call.input(0).shape)
    order, _ = _orders(given, rank)
    x, y = (
        Type(type_.elem, _permute_dims(type_.shape, order), _tensor_quantization(given, side))
        for type_, side in ((call.input(0), "x"), (call.output, "y"))
    )
    spatial = {**spatial_of(given, rank - 2), "kernel_shape": tuple(given["kernel"])}
    if given["op"] == "Avg" and given["count_pad"] and any(spatial["pads"]):
        run = _bind_padded_mean(x, y, spatial)
    else:
        run = _pool(given["op"], x, y, spatial)
    return _run_on_views(run, _transpose_by(order), _transpose_by(order))


def _pool(op: str, x: Type, y: Type, spatial: Mapping[str, Dims]) -> Run:
    """A pooling of NEM; where it cannot give the result itself, its result is converted."""
    bind = _NEM[_POOLS[op]].bind
    assert x.quant is not None
    assert y.quant is not None
    is_same = x.quant.equals(y.quant)
    if x.elem is y.elem if is_same else op == "Avg":
        return bind(Call((x,), (y,), spatial))
    middle = replace(x, shape=y.shape)
    run, convert = bind(Call((x,), (middle,), spatial)), _storage_conversion(middle, y, is_same)

    def run_converted(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        picked = np.empty(middle.shape, middle.dtype)
        run(inputs, [picked])
        outputs[0][...] = convert(picked)
        return None

    return run_converted


def _storage_conversion(x: Type, y: Type, is_same: bool) -> Seen:
    """From stored integers to stored integers of another type, or with another meaning."""
    if is_same:
        return lambda stored: saturate_to(stored.astype(np.int64), y.elem)
    real, stored_as = dequantizer(x), quantizer(y)
    return lambda stored: stored_as(real(stored))


def _bind_padded_mean(x: Type, y: Type, spatial: Mapping[str, Dims]) -> Run:
    """A mean over padding too: the padding becomes elements, each the real value 0."""
    half = len(x.shape) - 2
    begins, ends = spatial["pads"][:half], spatial["pads"][half:]
    pads = (0, *begins, 0, 0, *ends, 0)
    wide = replace(x, shape=pad(x.shape, pads))
    surround = bind_pad(Call((x,), (wide,), {"mode": "constant", "pads": pads}))
    run = _pool("Avg", wide, y, {**spatial, "pads": (0,) * 2 * half})

    def run_padded(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        padded = np.empty(wide.shape, wide.dtype)
        surround(inputs, [padded])
        return run([padded], outputs)

    return run_padded


def _conv_work(call: Call) -> Work:
    outputs = call.output.shape[1 if call.attributes["layout"] == "NCHW" else -1]
    return Work(macs=call.output.count * (prod(call.input(1).shape) // outputs))


def _linear_work(call: Call) -> Work:
    return Work(macs=call.output.count * call.input(1).shape[1])


def _pool_work(call: Call) -> Work:
    return Work(elements=call.output.count * prod(call.attributes["kernel"]))


GRAPH_FUSED = (
    Primitive("core.QConv", _refuse_floats(_qconv), Fitting(fit_qconv), _conv_work),
    Primitive("core.QLinear", _refuse_floats(_qlinear), Fitting(fit_qlinear), _linear_work),
    Primitive("core.QBinOp", _refuse_floats(_qbinop), Fitting(fit_qbinop), moves_outputs),
    Primitive("core.QPool", _refuse_floats(_qpool), Fitting(fit_qpool), _pool_work),
)
