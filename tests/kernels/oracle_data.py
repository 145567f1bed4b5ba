"""How the tests of `nacre-1`'s data and quantised operations run one, by its row alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module, TensorType
from nacre.core.ops import OPS
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.verify import verify
from nacre.kernels.interface import call as kernel
from nacre.kernels.interface.call import Fault
from nacre.kernels.interface.fitting import Fitting
from nacre.kernels.registry import PRIMITIVES
from tests.kernels.oracle_views import perform

Array = npt.NDArray[Any]
Dims = tuple[int, ...]
Operand = tuple[str, Array]

EVERY = tuple(GRAPH_TYPES)
FLOATS = tuple(name for name, elem in GRAPH_TYPES.items() if elem.kind == "float")
INTEGERS = tuple(n for n, elem in GRAPH_TYPES.items() if elem.kind in ("signed", "unsigned"))
seeds = st.integers(0, 2**32 - 1)
layouts = st.sampled_from(["dense", "strided", "unaligned"])
small = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)


def held(dtype: str) -> np.dtype[Any]:
    """The array type that carries an element type."""
    elem = GRAPH_TYPES[dtype]
    return np.dtype(np.int8) if elem.bits < 8 else elem.dtype


def made(dtype: str, shape: Dims, seed: int, *, odd: bool = True) -> Operand:
    """Values from all of an integer type, or floats with NaN, infinities and zeros among them."""
    rng, elem = np.random.default_rng(seed), GRAPH_TYPES[dtype]
    if elem.is_integer:
        whole = rng.integers(int(elem.lowest), int(elem.highest), shape, np.int64, endpoint=True)
        return dtype, np.asarray(whole).astype(held(dtype))
    values = np.asarray(rng.standard_normal(shape) * 8)
    if odd:
        pick = rng.integers(0, 10, shape)
        for index, special in enumerate((np.nan, np.inf, -np.inf, 0.0, -0.0)):
            values[pick == index] = special
    return dtype, values.astype(held(dtype))


def attempted(
    opcode: str,
    *operands: Operand,
    ordered: bool = False,
    memory: str = "dense",
    **given: Any,  # noqa: ANN401 - attributes
) -> tuple[Array, Fault | None]:
    """What an operation writes, and its fault; the result's type is what its row says."""
    spec = OPS[opcode]
    types = [TensorType(dtype, array.shape) for dtype, array in operands]
    attributes: Any = given
    result = spec.infer(types, attributes)
    assert result is not None, reason(opcode, [t.shape for t in types], **given)
    known = [kernel.TensorType(t.element, t.shape) for t in (*types, result)]
    assert spec.primitive is not None
    primitive = PRIMITIVES[spec.primitive]
    arrays = [array for _, array in operands]
    (found,), fault = perform(
        primitive, arrays, known[:-1], known[-1:], spec.with_defaults(attributes),
        ordered=ordered, layout=memory,
    )  # fmt: skip
    assert (found.dtype, found.shape) == (known[-1].dtype, result.shape)
    use = kernel.Call(tuple(known[:-1]), (known[-1],), spec.with_defaults(attributes))
    assert primitive.work(use).scalar_operations > 0
    return found, fault


def computed(opcode: str, *operands: Operand, **given: Any) -> Array:  # noqa: ANN401
    """The same of an operation that cannot fail here; an accumulator may wrap."""
    found, fault = attempted(opcode, *operands, **given)
    assert fault is None or (fault.kind == "wrap" and not fault.is_fatal)
    return found


def reason(opcode: str, shapes: Sequence[Dims], **given: Any) -> str | None:  # noqa: ANN401
    """Why there is no result, as a rule would say it."""
    shape = PRIMITIVES[f"core.{opcode}"].shape
    assert isinstance(shape, Fitting)
    attributes: Any = given
    return shape.reason(shapes, OPS[opcode].with_defaults(attributes))


def same_bits(found: Array, expected: Array) -> None:
    """Equal in shape and every byte."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def same_values(found: Array, expected: Array) -> None:
    """Equal in shape and every value; a NaN equals a NaN, and zeros are equal."""
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


Use = tuple[str, tuple[tuple[str, Dims], ...], Mapping[str, Any]]


def module_of(use: Use) -> Module:
    """A module that has nothing but this use."""
    opcode, types, given = use
    builder = Builder()
    operands = [builder.input(f"x{i}", dtype, dims) for i, (dtype, dims) in enumerate(types)]
    return builder.module(builder.add(opcode, *operands, **given))


def holds(use: Use) -> None:
    """A use that verifies in `nacre-1`, is refused in `core-v1`, reads back the same, and runs."""
    module = module_of(use)
    assert verify(module, "nacre-1") == []
    assert "MOD10" in {found.code for found in verify(module, "core-v1")}
    assert parse(print_module(module)) == module
    zeros = {name: np.zeros(t.shape, t.element.dtype) for name, t in module.input_types.items()}
    (result,), (type_,) = evaluate(module, zeros), module.output_types
    assert (result.dtype, result.shape) == (type_.element.dtype, type_.shape)


def refused(use: Use, code: str, told: str) -> None:
    """A use that a rule refuses, with what was found and expected."""
    with pytest.raises(InputError) as caught:
        module_of(use)
    found = [d.message for d in caught.value.diagnostics if d.code == code]
    assert any(told in message for message in found), caught.value.diagnostics
