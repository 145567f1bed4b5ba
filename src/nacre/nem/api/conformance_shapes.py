"""The shapes and attributes that a backend is tried on: small, some of size 1, some odd."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from nacre.kernels.interface.shapes import Dims
from nacre.nem.spec.opcodes import Opcode


@dataclass(frozen=True)
class Geometry:
    """Shapes of the inputs, optional ones last, and the attributes that go with them."""

    shapes: tuple[Dims, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


def _windows(
    shapes: tuple[Dims, ...], pads: Dims, strides: Dims, dilations: Dims, **more: int
) -> Geometry:
    spatial = {"pads": pads, "strides": strides, "dilations": dilations}
    return Geometry(shapes, {**spatial, **more})


def _pool(x: Dims, kernel: Dims, pads: Dims, strides: Dims) -> Geometry:
    return Geometry((x,), {"kernel_shape": kernel, "pads": pads, "strides": strides})


def _pad(x: Dims, pads: Dims, mode: str, **more: float) -> Geometry:
    return Geometry((x,), {"pads": pads, "mode": mode, **more})


def _slice(x: Dims, starts: Dims, ends: Dims, axes: Dims, steps: Dims) -> Geometry:
    cut = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
    return Geometry((x,), cut)


_PLAIN: tuple[Dims, ...] = ((9, 11), (1,), (17,), (2, 1, 7))

_PRODUCTS = (
    Geometry(((4, 6), (6, 5), (5,))),
    Geometry(((1, 1), (1, 1), (1,))),
    Geometry(((3, 17), (17, 1), (3, 1))),
    Geometry(((2, 3, 5), (5, 4), (1, 4))),
    Geometry(((2, 1, 3, 5), (2, 5, 7), (7,))),
)
_REDUCTIONS = (
    Geometry(((3, 4, 5),), {"axes": (1,), "keepdims": False}),
    Geometry(((3, 4, 5),), {"axes": (0, -1), "keepdims": True}),
    Geometry(((7,),), {"axes": (0,), "keepdims": False}),
    Geometry(((1, 1),), {"axes": (0,), "keepdims": False}),
)
_POSITIONS = (
    Geometry(((3, 4, 5),), {"axis": 1, "keepdims": False}),
    Geometry(((3, 7),), {"axis": -1, "keepdims": True}),
    Geometry(((1,),), {"axis": 0, "keepdims": False}),
)
_SOFTMAX = (
    Geometry(((5, 5),), {"axis": 1}),
    Geometry(((2, 17, 3),), {"axis": 1}),
    Geometry(((1,),), {"axis": 0}),
)
_NORMS = (
    Geometry(((5, 8), (8,), (8,)), {"axis": 1, "epsilon": 1e-5}),
    Geometry(((2, 5, 3), (5,)), {"axis": -2, "epsilon": 1e-3}),
    Geometry(((4, 17),), {"axis": -1, "epsilon": 1e-5}),
    Geometry(((1, 1),), {"axis": 0, "epsilon": 1e-5}),
)
_POOLING = (
    _pool((1, 6, 6, 3), (2, 2), (0, 0, 0, 0), (2, 2)),
    _pool((2, 5, 7, 1), (3, 2), (1, 0, 1, 1), (2, 1)),
    _pool((1, 1, 1, 1), (1, 1), (1, 1, 1, 1), (1, 1)),  # windows without any element
)

_BY_CATEGORY: Mapping[str, tuple[Geometry, ...]] = MappingProxyType(
    {
        "linear_algebra": _PRODUCTS,
        "elementwise_unary": tuple(Geometry((x,)) for x in _PLAIN),
        "elementwise_binary": tuple(Geometry((x, x)) for x in _PLAIN),
        "pooling": _POOLING,
        "reduction": _REDUCTIONS,
        "normalization": _NORMS,
        "softmax": _SOFTMAX,
        "conversion": tuple(Geometry((x,)) for x in _PLAIN),
    }
)
_BY_OPCODE: Mapping[str, tuple[Geometry, ...]] = MappingProxyType(
    {
        "conv1d": (
            _windows(((2, 9, 4), (3, 4, 5), (5,)), (1, 1), (1,), (1,)),
            _windows(((1, 8, 4), (3, 2, 6), (6,)), (2, 0), (2,), (2,), groups=2),
            _windows(((1, 1, 1), (1, 1, 1), (1,)), (0, 0), (1,), (1,)),
        ),
        "conv2d": (
            _windows(((1, 5, 5, 4), (3, 3, 4, 6), (6,)), (1, 1, 1, 1), (1, 1), (1, 1)),
            _windows(((2, 6, 7, 4), (3, 2, 2, 6), (6,)), (1, 0, 0, 1), (2, 1), (1, 2), groups=2),
            _windows(((1, 4, 3, 3), (2, 2, 1, 3), (3,)), (0, 0, 1, 1), (1, 1), (1, 1), groups=3),
            _windows(((1, 1, 1, 1), (1, 1, 1, 1), (1,)), (0, 0, 0, 0), (1, 1), (1, 1)),
        ),
        "conv3d": (
            _windows(
                ((1, 3, 4, 5, 4), (2, 3, 3, 4, 3), (3,)), (0, 1, 1, 1, 1, 1), (1, 1, 2), (1, 1, 1)
            ),
            _windows(
                ((1, 3, 3, 3, 4), (2, 2, 2, 2, 2), (2,)), (0,) * 6, (1,) * 3, (2, 1, 1), groups=2
            ),
            _windows(((1,) * 5, (1,) * 5, (1,)), (0,) * 6, (1,) * 3, (1,) * 3),
        ),
        "depthwise_conv2d": (
            _windows(((1, 5, 5, 3), (3, 3, 3, 1), (3,)), (1, 1, 1, 1), (1, 1), (1, 1)),
            _windows(((2, 6, 5, 3), (3, 2, 3, 2), (6,)), (1, 0, 0, 1), (2, 1), (1, 2)),
            _windows(((1, 5, 4, 3), (2, 3, 1, 6), (6,)), (1, 1, 0, 1), (1, 2), (1, 1)),
            _windows(((1, 1, 1, 1), (1, 1, 1, 1), (1,)), (0, 0, 0, 0), (1, 1), (1, 1)),
        ),
        "leaky_relu": tuple(Geometry((x,), {"alpha": 0.1}) for x in _PLAIN),
        "clamp": tuple(Geometry((x,), {"min_val": -1.5, "max_val": 2.25}) for x in _PLAIN),
        "transpose": (
            Geometry(((2, 3, 5),), {"perm": (2, 0, 1)}),
            Geometry(((1,),), {"perm": (0,)}),
        ),
        "reshape": (
            Geometry(((2, 3, 4),), {"target_shape": (6, 4)}),
            Geometry(((1,),), {"target_shape": (1, 1, 1)}),
        ),
        "slice": (
            _slice((5, 7), (1, 6), (5, -8), (0, 1), (2, -3)),
            _slice((1,), (0,), (1,), (0,), (1,)),
        ),
        "concat": (
            Geometry(((2, 3), (2, 1), (2, 5)), {"axis": 1}),
            Geometry(((1,),), {"axis": 0}),
        ),
        "split": (
            Geometry(((3, 7),), {"axis": -1, "split_sizes": (1, 4, 2)}),
            Geometry(((1,),), {"axis": 0, "split_sizes": (1,)}),
        ),
        "pad": (
            _pad((2, 3), (1, 0, 0, 2), "constant", constant_value=1.5),
            _pad((2, 3), (1, 0, 2, 1), "edge"),
            _pad((3, 4), (2, 1, 1, 3), "reflect"),
            _pad((1,), (0, 3), "constant"),
        ),
        "gather": (
            Geometry(((5, 3), (2, 4)), {"axis": 0}),
            Geometry(((2, 7, 2), (3,)), {"axis": -2}),
            Geometry(((1,), (1,)), {"axis": 0}),
        ),
        "argmax": _POSITIONS,
        "argmin": _POSITIONS,
    }
)


def geometries(opcode: Opcode) -> tuple[Geometry, ...]:
    """What an opcode is tried on; nothing for one that computes nothing by itself."""
    return _BY_OPCODE.get(opcode.name) or _BY_CATEGORY.get(opcode.category, ())
