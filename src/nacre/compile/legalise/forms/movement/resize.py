"""`Resize`: copies where it repeats elements, products where it mixes them.

What happens along an axis is a matrix, which the kernel itself gives: it resizes the identity.
"""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.legalise.forms.products.along import has_few_runs, product_along, take_slices
from nacre.compile.legalise.forms.windows.windows import Ints
from nacre.core.ops import OPS
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import Array
from nacre.kernels.interface.call import Call, TensorType
from nacre.kernels.registry import PRIMITIVES

_MOST_WEIGHTS = 1 << 26  # of the matrix of an axis: more are in no memory of a device
_PLAIN = {"mode": "nearest", "coordinate": "asymmetric", "rounding": "floor"}


def resize(site: RewriteSite) -> int | None:
    """Axis by axis; those that repeat every element a whole number of times together, last."""
    x = site.operands[0]
    before, after = site.type(x).shape, site.op.type.shape
    if site.type(x).element.is_integer and site.attributes["mode"] != "nearest":
        return None
    axes = _resized_axes(site)
    if any(site.type(x).shape[a] * site.op.type.shape[a] > _MOST_WEIGHTS for a in axes):
        return None
    matrices = {axis: _matrix(site, axis) for axis in axes}
    repeated = {a for a, m in matrices.items() if _is_repetition(m)}
    if matrices.keys() == repeated and is_device_form(site):
        return None
    for axis in sorted(matrices.keys() - repeated, key=partial(_axis_order_key, before, after)):
        resized = _resize_axis(site, x, axis, matrices[axis])
        if resized is None:
            return None
        x = resized
    if not repeated:
        return x
    sizes = tuple(after[a] if a in repeated else n for a, n in enumerate(site.type(x).shape))
    return site.add("Resize", x, sizes=sizes, **_PLAIN)


def _axis_order_key(before: Ints, after: Ints, axis: int) -> tuple[bool, bool, float]:
    """Those that shrink come first: what follows has less to do.

    An axis between others is transposed to the front and back, which is less to move before others
    grow, or after they have shrunk.
    """
    ratio = after[axis] / before[axis]
    is_between = prod(before[:axis]) > 1 and prod(before[axis + 1 :]) > 1
    return ratio >= 1, is_between != (ratio >= 1), ratio


def is_device_form(site: RewriteSite) -> bool:
    """Whether it is written in the one form that the device's copies are made from."""
    is_same = all(site.attributes[name] == word for name, word in _PLAIN.items())
    return is_same and not site.attributes["scales"]


def _resized_axes(site: RewriteSite) -> list[int]:
    before, after = site.type(site.operands[0]).shape, site.op.type.shape
    scales = site.attributes["scales"]
    assert isinstance(scales, tuple)
    return [
        axis
        for axis, (size, count) in enumerate(zip(before, after, strict=True))
        if size != count or (scales and scales[axis] != 1.0)
    ]


def _matrix(site: RewriteSite, axis: int) -> Array:
    """The weights [after, before] of an axis: what the identity becomes."""
    size, count = site.type(site.operands[0]).shape[axis], site.op.type.shape[axis]
    scales = site.attributes["scales"]
    assert isinstance(scales, tuple)
    given = {**site.op.attributes, "sizes": (count, size)}
    given["scales"] = (scales[axis], 1.0) if scales else ()
    spec = OPS["Resize"]
    real = site.op.type.element if site.op.type.dtype == "f64" else _F32
    types = TensorType(real, (size, size)), TensorType(real, (count, size))
    call = Call(types[:1], types[1:], {**spec.with_defaults(site.op.attributes), **given})
    matrix: Array = np.empty((count, size), real.dtype)
    PRIMITIVES["core.Resize"].bind(call)([np.eye(size, dtype=real.dtype)], [matrix])
    return matrix


def _is_repetition(matrix: Array) -> bool:
    """Whether place i takes element i // factor."""
    count, size = matrix.shape
    if count % size:
        return False
    return bool((matrix == np.repeat(np.eye(size), count // size, axis=0)).all())


def _resize_axis(site: RewriteSite, x: int, axis: int, matrix: Array) -> int | None:
    is_choice = bool(
        (np.count_nonzero(matrix, axis=1) == 1).all() and (matrix.max(axis=1) == 1).all()
    )
    if is_choice and has_few_runs(places := matrix.argmax(axis=1)):
        return take_slices(site, x, axis, places)
    return None if site.type(x).element.is_integer else product_along(site, x, axis, matrix)


_F32 = GRAPH_TYPES["f32"]
RESIZE_FORMS: Rules = {"Resize": [resize]}
