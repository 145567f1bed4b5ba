"""Integers of 4 bits at every border between the host and a device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.compile.options import Precision
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.values import Array
from nacre.nem.api.interpreter import NemInterpreter
from tests.cli.runner import invoke

Body = Callable[[Builder, str, tuple[int, ...]], int]
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)
DTYPES = {"i4": ml_dtypes.int4, "u4": ml_dtypes.uint4}


def drawn(name: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    element = GRAPH_TYPES[name]
    random = np.random.default_rng(seed)
    values = random.integers(int(element.lowest), int(element.highest) + 1, shape)
    return values.astype(element.dtype)


@pytest.mark.fuzz
@given(st.sampled_from(["i4", "u4"]), shapes, st.integers(0, 9), seeds)
def test_ddr_returns_the_nibbles_that_were_written(
    name: str, shape: tuple[int, ...], offset: int, seed: int
) -> None:
    machine, values = NemInterpreter(ddr_size=4096), drawn(name, shape, seed)
    machine.ddr_write_tensor(offset, values[..., ::-1])
    found = machine.ddr_read_tensor(offset, shape, DTYPES[name])
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found.astype(int), values[..., ::-1].astype(int))
    count = (values.size + 1) // 2
    flat = [int(v) & 15 for v in values[..., ::-1].reshape(-1)] + [0]
    naive = bytes(flat[2 * at] | flat[2 * at + 1] << 4 for at in range(count))
    assert machine.ddr_read(offset, count) == naive


PROGRAM = """
buffer A : L2 (size={size})
buffer B : L1 (size={size})
let X = region(A, 0, {size}) elem=i4, shape={shape}, layout={layout}
let Y = region(B, 0, {size}) elem=i4, shape={shape}, layout={layout}
t = transfer.sync(dst=Y, src=X)
"""


@pytest.mark.fuzz
@given(shapes, st.sampled_from(["int4", "int8", "int32", "file"]), seeds)
def test_a_session_returns_the_nibbles_that_it_was_given(
    shape: tuple[int, ...], route: str, seed: int
) -> None:
    values = drawn("i4", shape, seed)
    size = (values.size + 1) // 2
    if values.size == 1 and route == "int8":
        return  # as many bytes as the buffer has are its bytes
    text = PROGRAM.format(size=size, shape=list(shape), layout="ABCD"[: len(shape)])
    given = {"file": values.view("V1"), "int4": values}.get(route)
    machine = NemInterpreter()
    inputs = {"A": values.astype(route) if given is None else given}
    result = machine.run(machine.load_string(text), inputs)
    assert result.status == "completed", result.diagnostics
    np.testing.assert_array_equal(np.asarray(result.read_region("Y")), values.astype(np.int8))


FAR = [np.full(5, 8, np.int8), np.array([-9, 0, 0, 0, 0]), np.full(5, 200, np.uint8)]


@pytest.mark.parametrize("given", [*FAR, np.full(5, 31, np.uint8).view("V1")])
def test_values_that_four_bits_do_not_hold_are_refused(given: Array) -> None:
    text = PROGRAM.format(size=3, shape=[5], layout="A")
    machine = NemInterpreter()
    with pytest.raises(InputError) as caught:
        machine.run(machine.load_string(text), {"A": given})
    (found,) = caught.value.diagnostics
    assert found.code == "RUN05"
    assert "`A` does not fit" in found.message


@pytest.mark.parametrize("dtype", ["int2", "uint2", "float4_e2m1fn", "float6_e2m3fn"])
def test_narrower_types_have_no_place_in_memory(dtype: str) -> None:
    array = np.zeros(4, getattr(ml_dtypes, dtype))
    machine = NemInterpreter(ddr_size=64)
    for call in (lambda: machine.ddr_write_tensor(0, array),
                 lambda: machine.ddr_read_tensor(0, (4,), array.dtype)):  # fmt: skip
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.diagnostics[0].code == "RUN05"


def one(opcode: str, **attributes: object) -> Body:
    return lambda b, t, s: b.add(opcode, b.input("x", t, s), **attributes)


def two(op: str) -> Body:
    return lambda b, t, s: b.add("BinOp", b.input("x", t, s), b.input("y", t, s), op=op)


def cast_from(source: str, **attributes: object) -> Body:
    return lambda b, t, s: b.add("Cast", b.input("x", source, s), to=t, **attributes)


def dequantised(b: Builder, t: str, s: tuple[int, ...]) -> int:
    x = b.input("x", t, s)
    return b.add("Dequantize", x, b.constant(np.float32(0.5)), b.constant(np.array(1), t))


def quantised(b: Builder, t: str, s: tuple[int, ...]) -> int:
    x = b.input("x", "f32", s)
    scale, zero = b.constant(np.float32(0.5)), b.constant(np.array(1), t)
    return b.add("Quantize", x, scale, zero, to=t)


def weights(b: Builder, t: str, s: tuple[int, ...]) -> int:
    x = b.input("x", "i8", s)
    known = b.constant(drawn(t, s, 3).astype(np.int64), t)
    return b.add("BinOp", x, b.add("Cast", known, to="i8"), op="Add")


BODIES: dict[str, Body] = {
    "itself": lambda b, t, s: b.input("x", t, s),
    "to f32": one("Cast", to="f32"),
    "to i8": one("Cast", to="i8"),
    "to i32": one("Cast", to="i32"),
    "from f32": cast_from("f32"),
    "from i8": cast_from("i8"),
    "from i8 saturating": cast_from("i8", saturate=True),
    "from i32": cast_from("i32"),
    "transposed": one("Transpose", permutation=(1, 0)),
    "reshaped": one("Reshape", new_shape=(5, 3)),
    "slice": one("Slice", starts=(1, 1), ends=(3, 4), steps=(1, 1)),
    "sum": one("Sum", axes=(1,), keepdims=True),
    "clip": one("Clip", min=1, max=5),
    "add": two("Add"),
    "sub": two("Sub"),
    "mul": two("Mul"),
    "max": two("Max"),
    "dequantised": dequantised,
    "quantised": quantised,
    "weights": weights,
}


def module_of(body: Body, name: str, shape: tuple[int, ...] = (3, 5)) -> Module:
    builder = Builder()
    return builder.module(body(builder, name, shape))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("device", "name"), [("npm4k", "i4"), ("npm_pro", "u4")])
@pytest.mark.parametrize("label", BODIES)
def test_a_plan_has_the_values_of_the_module(label: str, device: str, name: str) -> None:
    module = module_of(BODIES[label], name)
    inputs = {str(op.attributes["name"]): drawn_for(op.type.dtype, op.type.shape)
              for op in module.inputs}  # fmt: skip
    bundle = nacre.compile(module, device)
    (wanted,), found = evaluate(module, inputs), bundle.run(inputs)["output0"]
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))
    assert bundle.validate(inputs).first_difference is None


@pytest.mark.parametrize("to", ["u8", "i8", "i16"])
@pytest.mark.parametrize("source", ["i8", "u8", "i32"])
def test_a_cast_that_saturates_does_so_on_the_device(source: str, to: str) -> None:
    builder = Builder()
    x = builder.input("x", source, (2, 7))
    module = builder.module(builder.add("Cast", x, to=to, saturate=True))
    element = GRAPH_TYPES[source]
    ends = (int(element.lowest), int(element.highest))
    given = np.random.default_rng(1).integers(ends[0], ends[1] + 1, (2, 7)).astype(element.dtype)
    found = nacre.compile(module, "npm4k").run({"x": given})["output0"]
    np.testing.assert_array_equal(found, evaluate(module, {"x": given})[0])


def drawn_for(dtype: str, shape: tuple[int, ...]) -> Array:
    if dtype == "f32":
        halves = np.random.default_rng(7).integers(-40, 40, shape) / 2
        return halves.astype(np.float32)
    values = np.random.default_rng(7).integers(-100 if dtype[0] == "i" else 0, 100, shape)
    return drawn(dtype, shape) if dtype in DTYPES else values.astype(GRAPH_TYPES[dtype].dtype)


def test_a_session_takes_bytes_whose_values_fit() -> None:
    module = module_of(one("Cast", to="f32"), "i4")
    bundle = nacre.compile(module, "npm4k")
    x = drawn("i4", (3, 5))
    session = bundle.session()
    for array in (x, x.astype(np.int8)):
        np.testing.assert_array_equal(session.run({"x": array})["output0"], x.astype(np.float32))
    far = x.astype(np.int8)
    far[1, 2] = 8
    with pytest.raises(InputError) as caught:
        session.run({"x": far})
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("EVL03", "input `x` has 8 at [1, 2], i4 holds -8 to 7")


@pytest.mark.parametrize("name", ["i4", "u4"])
def test_files_of_a_bundle_carry_four_bits(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = nacre.compile(module_of(one("Transpose", permutation=(1, 0)), name), "npm4k")
    bundle.save(tmp_path / "bundle")
    x = drawn(name, (3, 5))
    whole = np.int8 if name == "i4" else np.uint8
    for at, array in enumerate((x, x.astype(whole))):
        np.save(tmp_path / f"x{at}.npy", array)
        given, out = f"x={tmp_path / f'x{at}.npy'}", tmp_path / f"y{at}.npy"
        command = ("run", tmp_path / "bundle", "--input", given, "--output", f"output0={out}")
        assert invoke(capsys, *command).status == 0
        found = np.load(out)
        assert found.dtype == whole
        np.testing.assert_array_equal(found, x.T.astype(whole))
    np.save(tmp_path / "far.npy", np.full((3, 5), 100, whole))
    done = invoke(capsys, "run", tmp_path / "bundle", "--input", f"x={tmp_path / 'far.npy'}")
    assert (done.status, "EVL03" in done.text) == (1, True)


@pytest.mark.parametrize(("name", "precision"), [("i4", "f16"), ("i4", "i8"), ("u4", "f16")])
def test_a_session_keeps_states_of_four_bits(name: str, precision: Precision) -> None:
    builder, shape = Builder(), (3, 5)
    x, kept = builder.input("x", name, shape), builder.input("s", name, shape)
    new = builder.add("BinOp", x, kept, op="Max")
    builder.state("s", new, builder.constant(drawn(name, shape, 5).astype(np.int64), name))
    module = builder.module(builder.add("Cast", new, to="f32"))
    data = [{"x": drawn(name, shape, at)} for at in range(2)] if precision == "i8" else None
    session = nacre.compile(module, "npm4k", precision=precision, calibration=data).session()
    wanted = drawn(name, shape, 5).astype(int)
    for seed in range(3):
        given = drawn(name, shape, 10 + seed)
        wanted = np.maximum(wanted, given.astype(int))
        np.testing.assert_array_equal(session.run({"x": given})["output0"], wanted)
