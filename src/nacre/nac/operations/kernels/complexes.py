"""Complex numbers between transforms: how they come and go, and arithmetic on them.

Core IR has none. Calls that it has on floats, such as a product, are for these kernels where a
tensor is complex; a file has them under the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nacre.core.values import Array
from nacre.nac.operations.element_types import DType, axis_of, complex_of, dtype_of, real_of
from nacre.nac.operations.operation import ArrayType
from nacre.nac.operations.table import computes

Operand = Array | float


def _pairs_shape(z: Array) -> ArrayType:
    if z.dtype.kind != "c":
        raise ValueError(f"{z.dtype} is not complex")
    return ArrayType(real_of(z.dtype), (*z.shape, 2))


@computes("view_as_real.default", schema="self:T", shape=_pairs_shape)
def view_as_real(z: Array) -> Array:
    """Real and imaginary parts along a new last axis."""
    return np.ascontiguousarray(z).view(real_of(z.dtype)).reshape(*z.shape, 2)


def _paired_shape(x: Array) -> ArrayType:
    if x.dtype.name not in ("float32", "float64") or x.shape[-1:] != (2,):
        raise ValueError(f"{x.dtype} {list(x.shape)} holds no pairs")
    return ArrayType(complex_of(x.dtype), x.shape[:-1])


@computes("view_as_complex.default", schema="self:T", shape=_paired_shape)
def view_as_complex(x: Array) -> Array:
    """Complex numbers of the pairs along the last axis."""
    return np.ascontiguousarray(x).view(complex_of(x.dtype)).reshape(x.shape[:-1])


# Element by element


def _same(z: Array, *_: object) -> ArrayType:
    return ArrayType(z.dtype, z.shape)


def _real(z: Array, *_: object) -> ArrayType:
    return ArrayType(real_of(z.dtype), z.shape)


_UNARY: tuple[tuple[str, Callable[[Array], Array], Callable[..., ArrayType], bool], ...] = (
    ("real.default", np.real, _real, True),
    ("imag.default", np.imag, _real, True),
    ("abs.default", np.abs, _real, False),
    ("angle.default", np.angle, _real, True),
    ("conj.default _conj.default conj_physical.default _conj_physical.default", np.conj, _same,
     True),
    ("neg.default", np.negative, _same, False),
    ("exp.default", np.exp, _same, False),
    ("log.default", np.log, _same, False),
    ("sqrt.default", np.sqrt, _same, False),
    ("square.default", np.square, _same, False),
    ("reciprocal.default", np.reciprocal, _same, False),
    ("sgn.default", np.sign, _same, True),
)  # fmt: skip


def _unary(function: Callable[[Array], Array], shape: Callable[..., ArrayType]) -> Any:  # noqa: ANN401
    return lambda z: np.asarray(function(z)).astype(shape(z).dtype)


for _calls, _function, _shape, _is_kept in _UNARY:
    computes(*_calls.split(), schema="self:T", shape=_shape, is_kept=_is_kept)(
        _unary(_function, _shape)
    )


def _common(operands: Sequence[Operand]) -> DType:
    """The type of several: integers and numbers alone do not widen."""
    arrays = [x.dtype for x in operands if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]
    return np.result_type(*arrays) if arrays else np.dtype(np.complex64)


def _broadcast(*operands: Any, alpha: float = 1) -> ArrayType:  # noqa: ANN401 - arrays, numbers
    tensors = [x for x in operands if isinstance(x, np.ndarray)]
    return ArrayType(_common(tensors), np.broadcast_shapes(*(x.shape for x in tensors)))


def _binary(function: Callable[..., Any]) -> Callable[..., Array]:
    def kernel(a: Operand, b: Operand, alpha: float = 1) -> Array:
        scaled = b if alpha == 1 else b * alpha
        return np.asarray(function(a, scaled)).astype(_common([a, b]))

    return kernel


_ufunc: Any
for _name, _ufunc in (("add", np.add), ("sub", np.subtract)):
    for _overload, _kind in (("Tensor", "T"), ("Scalar", "n")):
        computes(
            f"{_name}.{_overload}", schema=f"self:T other:{_kind} alpha:n=1", shape=_broadcast,
            is_kept=False,
        )(_binary(_ufunc))  # fmt: skip
for _name, _ufunc in (("mul", np.multiply), ("div", np.divide)):
    for _overload, _kind in (("Tensor", "T"), ("Scalar", "n")):
        computes(
            f"{_name}.{_overload}", schema=f"self:T other:{_kind}", shape=_broadcast, is_kept=False
        )(_binary(_ufunc))
for _overload, _kind in (("Tensor_Scalar", "n"), ("Tensor_Tensor", "T")):
    computes(
        f"pow.{_overload}", schema=f"self:T exponent:{_kind}", shape=_broadcast, is_kept=False
    )(_binary(np.power))


def _complex_type(a: Array, b: Array) -> ArrayType:
    return ArrayType(complex_of(a.dtype), np.broadcast_shapes(a.shape, b.shape))


@computes("complex.default", schema="real:T imag:T", shape=_complex_type)
def make_complex(a: Array, b: Array) -> Array:
    """Complex numbers of their parts."""
    made = np.empty(np.broadcast_shapes(a.shape, b.shape), complex_of(a.dtype))
    made.real, made.imag = a, b
    return made


@computes("polar.default", schema="abs:T angle:T", shape=_complex_type)
def polar(size: Array, angle: Array) -> Array:
    """Complex numbers of their sizes and angles."""
    return make_complex(size * np.cos(angle), size * np.sin(angle))


@computes(
    "_to_copy.default",
    schema="self:T dtype:d?",
    shape=lambda z, dtype=None: ArrayType(dtype_of(dtype, z.dtype), z.shape),
    is_kept=False,
)
def to_copy(z: Array, dtype: str | None = None) -> Array:
    """Another type; of what becomes real, the real parts."""
    wanted = dtype_of(dtype, z.dtype)
    return np.asarray(z if wanted.kind == "c" else z.real).astype(wanted)


# Products and sums


def _product(a: Array, b: Array) -> ArrayType:
    vectors = a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
    first, second = (x.shape for x in vectors)
    if first[-1] != second[-2]:
        raise ValueError(f"{list(a.shape)} and {list(b.shape)} do not fit each other")
    shape = (*np.broadcast_shapes(first[:-2], second[:-2]), first[-2], second[-1])
    if b.ndim == 1:
        shape = shape[:-1]
    if a.ndim == 1:
        shape = (*shape[:-2], *shape[-1:]) if b.ndim > 1 else ()
    return ArrayType(_common([a, b]), shape)


for _name, _second in (("matmul", "other"), ("mm", "mat2"), ("bmm", "mat2")):
    computes(
        f"{_name}.default", schema=f"self:T {_second}:T", shape=_product, effort="cubic",
        is_kept=False,
    )(np.matmul)  # fmt: skip


def _summed(
    z: Array, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: str | None = None
) -> ArrayType:
    axes = range(z.ndim) if not dim else [axis_of(axis, z.ndim) for axis in dim]
    sizes = enumerate(z.shape)
    shape = [1 if at in axes else size for at, size in sizes if keepdim or at not in axes]
    return ArrayType(dtype_of(dtype, z.dtype), tuple(shape))


def _reduction(function: Callable[..., Any]) -> Callable[..., Array]:
    def kernel(
        z: Array, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: str | None = None
    ) -> Array:
        axes = tuple(dim) if dim else None
        return np.asarray(function(z, axis=axes, keepdims=keepdim)).astype(dtype_of(dtype, z.dtype))

    return kernel


for _name, _overload, _function2 in (("sum", "dim_IntList", np.sum), ("mean", "dim", np.mean)):
    computes(
        f"{_name}.{_overload}", schema="self:T dim:I? keepdim:b=false dtype:d?", shape=_summed,
        is_kept=False,
    )(_reduction(_function2))  # fmt: skip


# Elements in other places


def _moving(kernel: Callable[..., Array]) -> Callable[..., ArrayType]:
    """The type that a kernel gives which only moves elements: it is asked without any."""

    def shape(*given: Any, **named: Any) -> ArrayType:  # noqa: ANN401 - as the kernel takes them
        made = kernel(*given, **named)
        return ArrayType(made.dtype, made.shape)

    return shape


def _expand(z: Array, size: Sequence[int], implicit: bool = False) -> Array:
    missing = len(size) - z.ndim
    sizes = [z.shape[at - missing] if s == -1 else s for at, s in enumerate(size)]
    return np.broadcast_to(z, sizes)


def _slice(z: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    index = [slice(None)] * z.ndim
    index[axis_of(dim, z.ndim)] = slice(start, end, step)
    return z[tuple(index)]


def _squeeze(z: Array, dim: Sequence[int]) -> Array:
    return np.squeeze(z, tuple(axis for axis in dim if z.shape[axis] == 1))


_VIEWS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("view.default _unsafe_view.default", "self:T size:I", np.reshape),
    ("reshape.default", "self:T shape:I", np.reshape),
    ("permute.default", "self:T dims:I", np.transpose),
    ("transpose.int", "self:T dim0:i dim1:i", np.swapaxes),
    ("unsqueeze.default", "self:T dim:i", np.expand_dims),
    ("squeeze.dims", "self:T dim:I", _squeeze),
    ("squeeze.dim", "self:T dim:i", lambda z, dim: _squeeze(z, (dim,))),
    ("expand.default", "self:T size:I implicit:b=false", _expand),
    ("slice.Tensor", "self:T dim:i=0 start:i? end:i? step:i=1", _slice),
    ("select.int", "self:T dim:i index:i", lambda z, dim, index: z[(slice(None),) * axis_of(
        dim, z.ndim) + (index,)]),
    ("flip.default", "self:T dims:I", np.flip),
    ("clone.default alias.default detach.default contiguous.default", "self:T", lambda z, *_: z),
)  # fmt: skip
for _calls, _schema, _mover in _VIEWS:
    computes(*_calls.split(), schema=_schema, shape=_moving(_mover), is_kept=False)(_mover)


def _rolled(z: Array, shifts: Sequence[int], dims: Sequence[int] = ()) -> Array:
    return np.roll(z, tuple(shifts), tuple(dims)) if dims else np.roll(z, shifts[0])


computes("roll.default", schema="self:T shifts:I dims:I=[]", shape=_same, is_kept=False)(_rolled)


def _joined_shape(parts: Sequence[Array], dim: int) -> ArrayType:
    axis = axis_of(dim, parts[0].ndim)
    sizes = [part.shape[:axis] + part.shape[axis + 1 :] for part in parts]
    if len(set(sizes)) > 1:
        raise ValueError("tensors to be joined have other sizes than each other")
    total = sum(part.shape[axis] for part in parts)
    shape = (*parts[0].shape[:axis], total, *parts[0].shape[axis + 1 :])
    return ArrayType(_common(parts), shape)


@computes("cat.default", schema="tensors:T* dim:i=0", shape=_joined_shape, is_kept=False)
def cat(parts: Sequence[Array], dim: int) -> Array:
    """Tensors after each other."""
    return np.concatenate(parts, axis=dim)


def _padded_shape(z: Array, pad: Sequence[int], value: float = 0) -> ArrayType:
    shape = [size + sum(pair) for size, pair in zip(z.shape, _pads(z, pad), strict=True)]
    return ArrayType(z.dtype, tuple(shape))


def _pads(z: Array, pad: Sequence[int]) -> list[tuple[int, int]]:
    pairs = [(pad[at], pad[at + 1]) for at in range(0, len(pad), 2)]
    if len(pairs) > z.ndim or any(min(pair) < 0 for pair in pairs):
        raise ValueError(f"pads {list(pad)} around {list(z.shape)}")
    return [(0, 0)] * (z.ndim - len(pairs)) + pairs[::-1]


@computes(
    "constant_pad_nd.default", schema="self:T pad:I value:n=0", shape=_padded_shape, is_kept=False
)
def constant_pad(z: Array, pad: Sequence[int], value: float = 0) -> Array:
    """Elements around, of one value."""
    return np.pad(z, _pads(z, pad), constant_values=value)
