"""Arguments of another kind than a call takes are refused by name, not made to fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.core.module import TensorType
from nacre.nac.format.file import to_bytes
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.binding import Ref
from nacre.nac.program.lift import lift
from nacre.nac.run.model import NacModel, load

X = np.array([[1, 2, 3], [4, -5, 6]], np.float32)
AT = np.array([[0.9, 1.0, 0.0], [0.0, 0.0, 1.5]], np.float32)
ROW = np.array([0.0, 1.9], np.float32)


def _call(name: str, *given: Any) -> NacModel:  # noqa: ANN401 - see Assembler.call
    """A call of the inputs `x` and `at`, which are Ref(0) and Ref(1)."""
    made = Assembler()
    made.input("x")
    made.input("at")
    made.output(made.call(name, *given))
    return load(to_bytes(made.file()))


def _told(model: NacModel, **inputs: Any) -> str:  # noqa: ANN401 - arrays
    with pytest.raises(InputError) as refused:
        model.run(inputs)
    (found,) = refused.value.diagnostics
    assert found.code == "NAC47"
    return found.message


INDEXED: dict[str, tuple[tuple[Any, ...], np.ndarray, str]] = {
    "aten.embedding.default": ((Ref(0), Ref(1)), AT, "indices"),
    "aten.gather.default": ((Ref(0), 0, Ref(1)), AT, "index"),
    "aten.index_select.default": ((Ref(0), 0, Ref(1)), ROW, "index"),
    "aten.index.Tensor": ((Ref(0), Ref(1)), ROW, "indices"),
    "aten.index_copy.default": ((Ref(0), 0, Ref(1), Ref(0)), ROW, "index"),
    "aten.index_add.default": ((Ref(0), 0, Ref(1), Ref(0)), ROW, "index"),
    "aten.scatter.src": ((Ref(0), 0, Ref(1), Ref(0)), AT, "index"),
}


@pytest.mark.parametrize("name", INDEXED)
def test_an_index_is_an_integer(name: str) -> None:
    given, at, argument = INDEXED[name]
    model = _call(name, *given)
    assert _told(model, x=X, at=at).endswith(f"`{argument}` is of f32, expected integers")
    for dtype in (np.int64, np.int32, np.uint8):
        if name != "aten.index.Tensor" or dtype is not np.uint8:  # bytes are a mask there
            (found,) = model.run({"x": X, "at": at.astype(dtype)})
            assert found.dtype == np.float32


@pytest.mark.parametrize(
    ("name", "given", "argument"),
    [
        ("aten.where.self", (Ref(1), Ref(0), Ref(0)), "condition"),
        ("aten.masked_fill.Scalar", (Ref(0), Ref(1), 0.5), "mask"),
    ],
)
def test_a_mask_has_truth_values(name: str, given: tuple[Any, ...], argument: str) -> None:
    model = _call(name, *given)
    for dtype, shown in ((np.float32, "f32"), (np.int64, "i64")):
        told = _told(model, x=X, at=AT.astype(dtype))
        assert told.endswith(f"`{argument}` is of {shown}, expected truth values")
    for chosen in (AT.astype(np.bool_), AT.astype(np.uint8)):
        (found,) = model.run({"x": X, "at": chosen})
        filled = np.where(chosen, np.float32(0.5), X)
        np.testing.assert_array_equal(found, X if "where" in name else filled)


PARTS: dict[str, tuple[Any, ...]] = {
    "aten.split.Tensor": (1, 0),
    "aten.split_with_sizes.default": ((1, 1), 0),
    "aten.chunk.default": (2, 0),
    "aten.unbind.int": (0,),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_list_of_parts_is_no_tensor(name: str) -> None:
    for is_returned in (False, True):
        made = Assembler()
        parts = made.call(name, made.input("x"), *PARTS[name])
        made.output(parts if is_returned else made.call("nac.neg", parts))
        model = load(to_bytes(made.file()))
        wanted = "an output" if is_returned else "`self`"
        told = f"{wanted} is a list of 2 tensors, expected one of them"
        assert _told(model, x=X).endswith(told)
        with pytest.raises(InputError) as refused:
            lift(model, {"x": TensorType("f32", X.shape)})
        (found,) = refused.value.diagnostics
        assert (found.code, found.message.endswith(told)) == ("NAC49", True)


def test_one_part_and_the_first_result_of_a_norm_are_tensors() -> None:
    made = Assembler()
    x = made.input("x")
    norm = made.call("aten.native_layer_norm.default", x, (3,), None, None, 1e-5)
    whole = made.call("aten.split.Tensor", x, 2, 0)
    made.output(made.call("nac.neg", norm), made.call("nac.neg", whole))
    first, second = load(to_bytes(made.file())).run({"x": X})
    mean, spread = X.mean(1, keepdims=True), X.var(1, keepdims=True)
    np.testing.assert_allclose(first, -(X - mean) / np.sqrt(spread + 1e-5), rtol=1e-5)
    np.testing.assert_array_equal(second, -X)


def test_a_masked_array_is_no_input() -> None:
    model = _call("nac.neg", Ref(0))
    masked = np.ma.masked_array(X, X < 0)
    with pytest.raises(InputError) as refused:
        model.run({"x": masked, "at": X})
    (found,) = refused.value.diagnostics
    assert found.code == "NAC46"
    assert found.message.endswith("input `x` is a masked array, expected every element")
