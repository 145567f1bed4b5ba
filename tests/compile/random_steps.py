"""The steps in which random graphs grow: one for each kind of thing that models do."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from hypothesis import strategies as st

from tests.compile.random_graphs import MOST, Dims, Growing
from tests.compile.random_named import NAMED

Step = Callable[[Growing], None]


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


# Products


def convolution(g: Growing) -> None:
    """Channels first or last, of every kind."""
    last = bool(g.number(0, 2))
    x = g.pick(4)
    shape = g.shape(x)
    plane, cin = (shape[1:3], shape[3]) if last else (shape[2:], shape[1])
    groups = g.draw(st.sampled_from((1, 1, *_divisors(cin), cin)))
    cout = groups * g.number(1, max(1, 12 // groups))
    dilations = tuple(1 + g.chance(4) for _ in plane)
    kernel = tuple(
        g.number(1, max(1, min(4, (n - 1) // d + 1))) for n, d in zip(plane, dilations, strict=True)
    )
    most = [min(3, d * (k - 1)) for k, d in zip(kernel, dilations, strict=True)]
    pads = tuple(g.number(0, m) for m in (*most, *most)) if g.number(0, 1) else (0,) * 4
    strides = tuple(g.number(1, 3) for _ in plane)
    filter_ = (*kernel, cin // groups, cout) if last else (cout, cin // groups, *kernel)
    weights = g.weights(*filter_, spread=(prod(kernel) * cin // groups) ** -0.5)
    bias = (g.weights(cout, spread=0.2),) if g.number(0, 1) else ()
    y = g.add("Conv", x, weights, *bias, layout="NHWC" if last else "NCHW", pads=pads,
              strides=strides, dilations=dilations, groups=groups)  # fmt: skip
    if g.chance(3):
        _activated(g, y)


def convolution_1d(g: Growing) -> None:
    """Along one axis, channels first."""
    x = g.pick(3)
    _, cin, length = g.shape(x)
    kernel = g.number(1, min(5, length))
    cout = g.number(1, 8)
    pads = (g.number(0, kernel - 1), g.number(0, kernel - 1))
    weights = g.weights(cout, cin, kernel, spread=(cin * kernel) ** -0.5)
    g.add("Conv", x, weights, pads=pads, strides=(g.number(1, 2),))


def transposed(g: Growing) -> None:
    """A convolution that spreads."""
    x = g.pick(4)
    cin = g.shape(x)[1]
    cout, strides = g.number(1, 4), (g.number(1, 2), g.number(1, 2))
    if prod(g.shape(x)) * 16 * cout // cin > MOST:
        return
    kernel = (g.number(1, 3), g.number(1, 3))
    weights = g.weights(cin, cout, *kernel, spread=(cin * prod(kernel)) ** -0.5)
    g.add("ConvTranspose", x, weights, strides=strides)


def linear(g: Growing) -> None:
    """By constant weights, in either spelling."""
    x = g.pick()
    depth, columns = g.shape(x)[-1], g.number(1, 24)
    spread = depth**-0.5
    if g.number(0, 1) or len(g.shape(x)) == 1:
        bias = (g.weights(columns),) if g.number(0, 1) else ()
        y = g.add("Linear", x, g.weights(columns, depth, spread=spread), *bias)
    else:
        y = g.add("MatMul", x, g.weights(depth, columns, spread=spread))
    if g.chance(3):
        _activated(g, y)


def unrolled(g: Growing) -> None:
    """The same weights several times, as a loop over time steps leaves them."""
    x = g.pick()
    depth = g.shape(x)[-1]
    weights, bias = g.weights(depth, depth, spread=depth**-0.5), g.weights(depth)
    for _ in range(g.number(2, 4)):
        x = g.add("Linear", x, weights, bias)
        if g.number(0, 1):
            x = _activated(g, x)


def product(g: Growing) -> None:
    """Of two computed operands; batches may repeat."""
    a = g.pick(where=lambda shape: len(shape) >= 2)
    shape = g.shape(a)
    if g.chance(3):
        order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
        b = g.add("Transpose", a, permutation=order)
        g.add("MatMul", *((a, b) if g.number(0, 1) else (b, a)))
        return
    batch = tuple(1 if g.chance(3) else n for n in shape[:-2])
    batch = batch[g.number(0, len(batch)) :]
    b = g.input(0, (*batch, shape[-1], g.number(1, 9)))
    g.add("MatMul", a, b)


def attention(g: Growing) -> None:
    """Scores, softmax, weighted sum."""
    x = g.pick(3)
    _, length, depth = g.shape(x)
    if length * length > MOST:
        return
    q, k, v = (g.add("MatMul", x, g.weights(depth, 4, spread=depth**-0.5)) for _ in range(3))
    scores = g.add("MatMul", q, g.add("Transpose", k, permutation=(0, 2, 1)))
    scaled = g.add("BinOp", scores, g.builder.constant(np.float32(0.5)), op="Mul")
    g.add("MatMul", g.add("Softmax", scaled, axis=2), v)


# Functions


_UNARY = ("Sigmoid", "Tanh", "Abs", "Erf", "Sin")
_FUNCTIONS = ("ReluNan", "Silu", "Gelu", "LeakyRelu", "Clip", "HardSwish", "Neg", "Exp", "Sqrt",
              *_UNARY)  # fmt: skip


def _activated(g: Growing, x: int) -> int:
    word = g.draw(st.sampled_from(_FUNCTIONS))
    if word == "Clip":
        low, high = g.draw(st.sampled_from(((0.0, 6.0), (-0.5, 1.0), (-1.0, 0.25))))
        return g.add("Clip", x, min=low, max=high)
    if word == "Gelu":
        return g.add("Gelu", x, approximate=g.draw(st.sampled_from(("none", "tanh"))))
    if word == "Exp":  # what is large would become infinite
        return g.add("Exp", g.add("Clip", x, min=-4.0, max=4.0))
    if word == "Sqrt":
        return g.add("Unary", g.add("Unary", x, op="Abs"), op="Sqrt")
    if word in _UNARY:
        return g.add("Unary", x, op=word)
    return g.add(word, x)


def activation(g: Growing) -> None:
    """A function of elements."""
    _activated(g, g.pick())


def _other(g: Growing, shape: Dims) -> int:
    """Something that broadcasts with a shape: axes of size 1, or missing at the front."""
    small = tuple(1 if g.number(0, 1) else n for n in shape)
    small = small[g.number(0, len(small)) :]
    way = g.number(0, 3)
    if way == 0:
        return g.weights(*small)
    same = [v for v in g.values if g.shape(v) == shape]
    if way == 1 and same:
        return g.draw(st.sampled_from(same))
    if way == 2 and len(same) > 0 and shape:
        axes = tuple(a for a in range(len(shape)) if g.number(0, 1))
        if axes:
            return g.add("Mean", same[-1], axes=axes, keepdims=True)
    return g.input(0, small)


def binary(g: Growing) -> None:
    """Two operands, of which either may repeat."""
    a = g.pick()
    if g.chance(4):  # both repeat
        shape = list(g.shape(a))
        free = [i for i, n in enumerate(shape) if n == 1]
        if free:
            axis = g.draw(st.sampled_from(free))
            shape[axis] = g.number(2, 5)
            if prod(shape) <= MOST:
                a_first = g.number(0, 1)
                b = g.input(0, tuple(shape[axis:]))
                g.add("BinOp", *((a, b) if a_first else (b, a)), op="Add")
                return
    b = _other(g, g.shape(a))
    op = g.draw(st.sampled_from(("Add", "Mul", "Sub", "Max", "Min", "Div")))
    if op == "Div":
        b = g.add("BinOp", g.add("Unary", b, op="Abs"), g.builder.constant(np.float32(1)), op="Add")
    g.add("BinOp", *((a, b) if op == "Div" or g.number(0, 1) else (b, a)), op=op)


def residual(g: Growing) -> None:
    """A value and a function of it."""
    x = g.pick()
    g.add("BinOp", x, _activated(g, x), op="Add")


def choice(g: Growing) -> None:
    """One of two values, element by element."""
    x = g.pick()
    b = _other(g, g.shape(x))
    is_less = g.builder.add("Compare", x, b, op=g.draw(st.sampled_from(("Lt", "Ge"))))
    g.add("Where", is_less, x, g.weights(1))


def rows(g: Growing) -> None:
    """Softmax and norms along some axis."""
    x = g.pick()
    shape = g.shape(x)
    axis = g.number(0, len(shape) - 1) if g.chance(3) else len(shape) - 1
    word = g.draw(st.sampled_from(("Softmax", "LogSoftmax", "LayerNorm", "RmsNorm")))
    if word in ("Softmax", "LogSoftmax"):
        g.add(word, x, axis=axis)
        return
    given = [g.weights(*shape[axis:])] if g.number(0, 1) else []
    if given and word == "LayerNorm" and g.number(0, 1):
        given.append(g.weights(*shape[axis:]))
    g.add(word, x, *given, axis=axis)


def reduction(g: Growing) -> None:
    """Sums, means and the like."""
    x = g.pick()
    rank = len(g.shape(x))
    axes = tuple(a for a in range(rank) if g.number(0, 1)) or (rank - 1,)
    if len(axes) == rank and not g.chance(4):
        axes = axes[1:] or axes
    keep = bool(g.number(0, 1)) or len(axes) == rank
    word = g.draw(st.sampled_from(("Mean", "Sum", "Max", "L2")))
    if word in ("Mean", "Sum"):
        g.add(word, x, axes=axes, keepdims=keep)
    else:
        g.add("Reduce", x, axes=axes, keepdims=keep, op=word)


def pool(g: Growing) -> None:
    """Windows of which the largest or the average is taken."""
    last = bool(g.number(0, 2))
    x = g.pick(4)
    shape = g.shape(x)
    plane = shape[1:3] if last else shape[2:]
    kernel = tuple(n if g.chance(4) else g.number(1, min(3, n)) for n in plane)
    most = [min(2, k // 2) for k in kernel]
    pads = tuple(g.number(0, m) for m in (*most, *most)) if g.number(0, 1) else (0,) * 4
    given: dict[str, object] = {"layout": "NHWC" if last else "NCHW", "kernel": kernel}
    given |= {"pads": pads, "strides": tuple(g.number(1, 2) for _ in plane)}
    if g.chance(4):
        given["ceil"] = True
    if g.number(0, 1):
        g.add("MaxPool", x, **given)
    else:
        g.add("AvgPool", x, **given, count_pad=g.chance(4))


def squeeze_excite(g: Growing) -> None:
    """Channels scaled by what a small network makes of their means."""
    x = g.pick(4)
    channels = g.shape(x)[3]
    means = g.add("Mean", x, axes=(1, 2), keepdims=True)
    hidden = g.add("Conv", means, g.weights(1, 1, channels, 3), layout="NHWC")
    wide = g.add("Conv", g.add("ReluNan", hidden), g.weights(1, 1, 3, channels), layout="NHWC")
    g.add("BinOp", x, g.add("Unary", wide, op="Sigmoid"), op="Mul")


# Moves


def reshape(g: Growing) -> None:
    """The same elements under another shape."""
    x = g.pick()
    left, shape = prod(g.shape(x)), []
    for _ in range(g.number(0, 4)):
        size = g.draw(st.sampled_from(_divisors(left)))
        shape.append(size)
        left //= size
    g.add("Reshape", x, new_shape=(*shape, left))


def units(g: Growing) -> None:
    """Axes of size 1 that come and go."""
    x = g.pick()
    shape = g.shape(x)
    single = tuple(a for a, n in enumerate(shape) if n == 1)
    if single and len(shape) > 1 and g.number(0, 1):
        g.add("Squeeze", x, axes=single[: len(shape) - 1])
    elif len(shape) < 5:
        g.add("ExpandDims", x, axes=(g.number(0, len(shape)),))


def transpose(g: Growing) -> None:
    """Axes in any other order."""
    x = g.pick()
    order = g.draw(st.permutations(range(len(g.shape(x)))))
    g.add("Transpose", x, permutation=tuple(order))


def _cut(g: Growing, x: int) -> int:
    starts, ends, steps = [], [], []
    for size in g.shape(x):
        start = g.number(0, size - 1) if g.number(0, 1) else 0
        starts.append(start)
        ends.append(g.number(start + 1, size) if g.number(0, 1) else size)
        steps.append(g.number(1, 3) if g.chance(4) else 1)
    return g.add("Slice", x, starts=tuple(starts), ends=tuple(ends), steps=tuple(steps))


def cut(g: Growing) -> None:
    """A part, with or without gaps."""
    _cut(g, g.pick())


def split(g: Growing) -> None:
    """In two along an axis, one of them changed, and together again."""
    x = g.pick()
    shape = g.shape(x)
    wide = [a for a, n in enumerate(shape) if n > 1]
    if not wide:
        return
    axis = g.draw(st.sampled_from(wide))
    at = g.number(1, shape[axis] - 1)
    zeros, ones = (0,) * len(shape), (1,) * len(shape)
    first_end = tuple(at if a == axis else n for a, n in enumerate(shape))
    second = tuple(at if a == axis else 0 for a in range(len(shape)))
    a = g.add("Slice", x, starts=zeros, ends=first_end, steps=ones)
    b = g.add("Slice", x, starts=second, ends=shape, steps=ones)
    if g.number(0, 1):
        b = _activated(g, b)
    g.add("Concat", *((a, b) if g.number(0, 1) else (b, a)), axis=axis)


def concat(g: Growing) -> None:
    """Several values side by side, one of them perhaps twice."""
    x = g.pick()
    shape = g.shape(x)
    axis = g.number(0, len(shape) - 1)
    fitting = [
        v
        for v in g.values
        if len(g.shape(v)) == len(shape)
        and all(a == axis or m == n for a, (m, n) in enumerate(zip(g.shape(v), shape, strict=True)))
    ]
    parts = [x]
    for _ in range(g.number(1, 3)):
        way = g.number(0, 3)
        if way == 0:
            parts.append(_activated(g, x))
        elif way == 1:
            parts.append(g.weights(*shape))
        else:
            parts.append(g.draw(st.sampled_from(fitting)))
    if sum(prod(g.shape(p)) for p in parts) <= MOST:
        g.add("Concat", *parts, axis=axis)


def pad(g: Growing) -> None:
    """More around."""
    x = g.pick()
    shape = g.shape(x)
    rare = g.chance(5)
    mode = g.draw(st.sampled_from(("edge", "reflect"))) if rare else "constant"
    most = [min(2, n - 1) if rare else 2 for n in shape]
    pads = tuple(g.number(0, m) if g.number(0, 1) else 0 for m in (*most, *most))
    value = {} if rare else {"value": g.draw(st.sampled_from((0.0, 0.0, 1.5)))}
    if prod(n + 4 for n in shape) <= 2 * MOST:
        g.add("Pad", x, pads=pads, mode=mode, **value)


def broadcast(g: Growing) -> None:
    """Repeated along axes of size 1 and new ones."""
    x = g.pick()
    shape = tuple(g.number(1, 4) if n == 1 else n for n in g.shape(x))
    if len(shape) < 5 and g.number(0, 1):
        shape = (g.number(1, 3), *shape)
    if prod(shape) <= MOST:
        g.add("Broadcast", x, shape=shape)


def resize(g: Growing) -> None:
    """Every element several times, or mixed with its neighbours."""
    x = g.pick(4)
    factors = [g.number(1, 3), g.number(1, 3)]
    shape = g.shape(x)
    last = bool(g.number(0, 1))
    sizes = list(shape)
    is_mixing = not g.number(0, 2)
    for axis, factor in zip((1, 2) if last else (2, 3), factors, strict=True):
        sizes[axis] = g.number(1, 3 * sizes[axis]) if is_mixing else sizes[axis] * factor
    if is_mixing and prod(sizes) <= MOST:
        coordinate = g.draw(st.sampled_from(("half_pixel", "asymmetric", "align_corners")))
        g.add("Resize", x, sizes=tuple(sizes), mode="linear", coordinate=coordinate)
    elif prod(sizes) <= MOST:
        way = g.draw(
            st.sampled_from((("asymmetric", "floor"), ("half_pixel", "round_prefer_floor")))
        )
        g.add("Resize", x, sizes=tuple(sizes), mode="nearest", coordinate=way[0], rounding=way[1])


def flip(g: Growing) -> None:
    """Backwards."""
    x = g.pick()
    g.add("Flip", x, axes=(g.number(0, len(g.shape(x)) - 1),))


def gather(g: Growing) -> None:
    """Rows by their numbers."""
    x = g.pick() if g.number(0, 2) else g.weights(g.number(1, 9), g.number(1, 9))
    shape = g.shape(x)
    axis = g.number(0, len(shape) - 1) if g.chance(3) else 0
    count = tuple(g.number(1, 5) for _ in range(g.number(0, 2)))
    if len(count) + len(shape) > 5 or prod(count) * prod(shape) > MOST:
        return
    indices = g.indices(count, shape[axis])
    if len(shape) == 1 and not count:
        return  # ends as a number without axes
    g.add("GatherAxis", x, indices, axis=axis)


def constant(g: Growing) -> None:
    """A value that is known."""
    g.put(g.weights(*(g.number(1, 5) for _ in range(g.number(1, 4)))))


STEPS: tuple[Step, ...] = (
    convolution, convolution, convolution, convolution_1d, transposed, linear, linear, unrolled,
    product, product, attention, activation, activation, binary, binary, binary, residual, choice,
    rows, rows, reduction, pool, pool, squeeze_excite, reshape, reshape, units, transpose,
    transpose, cut, cut, split, concat, concat, pad, broadcast, resize, flip, gather, constant,
    *NAMED,
)  # fmt: skip
