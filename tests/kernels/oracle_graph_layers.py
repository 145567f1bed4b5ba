"""How the tests of layers of graphs run an op, judge its floats, and put it into a module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import TensorType as CoreType
from nacre.core.ops import OPS
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.values import attributes as frozen_attributes
from nacre.core.verify import verify
from nacre.kernels.interface.call import Call, TensorType, Work
from nacre.kernels.interface.fitting import Fitting
from nacre.kernels.registry import PRIMITIVES
from tests.kernels.oracle_views import Array, Dims, perform

FLOATS = ("f16", "bf16", "f8e4m3", "f8e5m2", "f32", "f64")
INTEGERS = ("i4", "u4", "i8", "u8", "i16", "u16", "i32", "u32", "i64")


def tensor(elem: str, shape: Sequence[int]) -> TensorType:
    return TensorType(GRAPH_TYPES[elem], tuple(shape))


def values(elem: str, shape: Sequence[int], seed: int, odd: bool = False) -> Array:
    """Values of a tensor: any integers, or floats around 0, NaN and infinities among them."""
    rng = np.random.default_rng(seed)
    type_ = tensor(elem, shape)
    if type_.elem.is_integer:
        low, high = int(type_.elem.lowest), int(type_.elem.highest)
        return np.asarray(rng.integers(low, high, shape, np.int64, endpoint=True)).astype(
            type_.dtype
        )
    found = np.asarray(rng.standard_normal(tuple(shape)))
    if odd:
        pick = rng.integers(0, 20, found.shape)
        specials = (np.nan, np.inf, -np.inf, -0.0, 0.0)
        for index, special in enumerate(specials):
            found[pick == index] = special
    with np.errstate(all="ignore"):
        return found.astype(type_.dtype)


def work(op: str, elems: str, shapes: Sequence[Dims], given: Mapping[str, Any]) -> Work:
    """The work of one use."""
    attributes = OPS[op].with_defaults(frozen_attributes(given))
    found = PRIMITIVES[f"core.{op}"].shape(list(shapes), attributes)
    assert found is not None
    types = tuple(tensor(elems, shape) for shape in shapes)
    return PRIMITIVES[f"core.{op}"].work(Call(types, (tensor(elems, found[0]),), attributes))


def compute(
    op: str,
    elem: str | Sequence[str],
    arrays: Sequence[Array],
    given: Mapping[str, Any],
    *,
    ordered: bool = False,
    layout: str = "dense",
    heat: bool | None = None,
) -> Array:
    """The output of an op that cannot fail, of the type that its row says."""
    elems = [elem] * len(arrays) if isinstance(elem, str) else list(elem)
    attributes = frozen_attributes(given)
    types = [tensor(e, a.shape) for e, a in zip(elems, arrays, strict=True)]
    core = [CoreType(e, a.shape) for e, a in zip(elems, arrays, strict=True)]
    result = OPS[op].infer(core, attributes)
    assert result is not None, reason(op, [a.shape for a in arrays], given)
    (found,), fault = perform(
        PRIMITIVES[f"core.{op}"],
        arrays,
        types,
        [tensor(result.dtype, result.shape)],
        OPS[op].with_defaults(attributes),
        ordered=ordered,
        layout=layout,
        heat=heat,
    )
    assert fault is None
    return found


def reason(op: str, shapes: Sequence[Dims], given: Mapping[str, Any]) -> str | None:
    """Why an op does not fit; None where it does."""
    shape = PRIMITIVES[f"core.{op}"].shape
    assert isinstance(shape, Fitting)
    attributes = OPS[op].with_defaults(frozen_attributes(given))
    found = shape.reason(list(shapes), attributes)
    assert (found is None) == (shape(list(shapes), attributes) is not None)
    return found


def assert_near(
    found: Array, expected: Array, elem: str, *, ulps: float, magnitude: object = 1.0
) -> None:
    """Floats within so many ulps of f32 (f64) at a magnitude, and half a one of their own type."""
    info = ml_dtypes.finfo(tensor(elem, ()).dtype)  # type: ignore[no-untyped-call]
    wide = np.finfo(np.float64 if elem == "f64" else np.float32)
    assert found.shape == expected.shape
    got = found.astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = expected.astype(found.dtype).astype(np.float64)
        room = ulps * float(wide.eps) * np.asarray(magnitude, np.float64)
        room = room + float(info.eps) * np.abs(expected) + float(info.smallest_subnormal)
        is_near = np.abs(got - expected) <= room
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    assert bool((same | is_near).all()), f"{got} instead of {wanted}"


def assert_in_core(op: str, types: Sequence[tuple[str, Dims]], given: Mapping[str, Any]) -> None:
    """A module with the op verifies in `nacre-1` alone, and its text says all of it."""
    build = Builder()
    operands = [build.input(f"x{i}", *type_) for i, type_ in enumerate(types)]
    module = build.module(build.add(op, *operands, **given))
    assert verify(module, "nacre-1") == []
    assert any(d.code == "MOD10" for d in verify(module, "core-v1"))
    text = print_module(module)
    inputs = {
        f"x{i}": values(*type_, i).astype(GRAPH_TYPES[type_[0]].dtype)
        for i, type_ in enumerate(types)
    }
    (result,) = evaluate(module, inputs)
    (declared,) = module.output_types
    assert (result.shape, result.dtype) == (declared.shape, declared.element.dtype)
    again = parse(text)
    assert again == module
    assert print_module(again) == text


def assert_refused(
    op: str, types: Sequence[tuple[str, Dims]], given: Mapping[str, Any], code: str
) -> str:
    """The builder refuses the op with this rule; what it says."""
    build = Builder()
    operands = [build.input(f"x{i}", *type_) for i, type_ in enumerate(types)]
    with pytest.raises(InputError) as caught:
        build.add(op, *operands, **given)
    codes = {d.code for d in caught.value.diagnostics}
    if "MOD10" in codes:  # a number beyond 64 bits is no attribute: the kernel is not even asked
        return str(reason(op, [shape for _, shape in types], given))
    assert code in codes
    return str(caught.value)
