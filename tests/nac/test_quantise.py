"""Weights quantised as the format's practice does it: its own files are the oracle."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nacre import core, nac
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.module import Labels
from nacre.nac.format.file import to_bytes
from nacre.nac.format.scales import scale_problem
from nacre.nac.format.values import Tensor
from nacre.nac.program.lift import lift
from nacre.nac.quantise.recipes import RECIPES
from nacre.nac.quantise.report import QuantisationReport
from nacre.nac.run.dequantisation import dequantize
from nacre.nac.verify import verify
from tests.nac.files import FIXTURES

HOME = Path(__file__).parent / "fixtures"
QUANTS = {"fp16": "FP16", "int8_tensor": "INT8_TENSOR", "int8_channel": "INT8_CHANNEL",
          "block_fp8": "BLOCK_FP8"}  # fmt: skip
Array = np.ndarray


def plain() -> nac.NacModel:
    return nac.load(HOME / "mlp.none.v16.nac")


@pytest.mark.parametrize(("option", "name"), QUANTS.items())
def test_weights_have_the_bytes_of_the_reference(option: str, name: str) -> None:
    made, report = nac.quantise(plain(), option)
    theirs = nac.read(HOME / f"mlp.{name}.v16.nac")
    assert made.file.header.quant == theirs.header.quant
    names = {p.id: p.text for p in theirs.data.parameters}
    wanted = {names[t.id]: t for t in theirs.data.tensors}
    assert len(wanted) == 6
    ours = {p.id: p.text for p in made.file.data.parameters}
    for tensor in made.file.data.tensors:
        other = wanted[ours[tensor.id]]
        fields = ("dtype", "shape", "quant", "axis", "block", "true_shape")
        assert [getattr(tensor, f) for f in fields] == [getattr(other, f) for f in fields]
        assert bytes(tensor.scales) == bytes(other.scales)
        assert bytes(tensor.data) == bytes(other.data)
    assert all(row.sqnr_db > 30 for row in report.weights)


@pytest.mark.parametrize("option", QUANTS)
def test_a_built_file_computes_what_its_weights_say(option: str) -> None:
    x = np.load(HOME / "mlp.none.v16.npz")["in0"]
    model = plain()
    name = model.inputs[0].name
    module = lift(model, {name: core.TensorType("f32", x.shape)})
    raw = nac.to_bytes(nac.build(module, option).file)
    assert nac.verify(raw) == []
    theirs = nac.load(HOME / f"mlp.{QUANTS[option]}.v16.nac")
    np.testing.assert_array_equal(nac.load(raw).run({name: x})[0], theirs.run({name: x})[0])
    assert nac.to_bytes(nac.build(module, option).file) == raw


def naive(option: str, array: Array) -> Array:
    """The recipe of one scale by hand, an element at a time."""
    flat = array.reshape(-1)
    groups = {
        "int8_tensor": [flat],
        "int8_channel": list(array.reshape(len(array), -1)),
        "block_fp8": np.split(flat, range(64, array.size, 64)),
    }[option]
    made = []
    for group in groups:
        scale = np.float32(max(abs(float(v)) for v in group)) / np.float32(127)
        scale = scale or np.float32(1 if option == "block_fp8" else 1e-9)
        made += [np.float32(round(float(np.float32(v) / scale))) * scale for v in group]
    return np.array(made, np.float32).reshape(array.shape)


@given(
    option=st.sampled_from(["int8_tensor", "int8_channel", "block_fp8"]),
    dims=st.lists(st.integers(1, 9), min_size=2, max_size=3),
    seed=st.integers(0, 1000),
    zeros=st.booleans(),
)
def test_recipes_are_what_a_loop_computes(
    option: str, dims: list[int], seed: int, zeros: bool
) -> None:
    array = np.random.default_rng(seed).standard_normal(dims).astype(np.float32)
    if zeros:
        array[0] = 0
    code = ["none", "fp16", "int8_tensor", "int8_channel", "block_fp8"].index(option)
    np.testing.assert_array_equal(dequantize(RECIPES[code](1, array)), naive(option, array))


def naive_groups(tensor: Tensor) -> Array:
    """Groups of 4 bits by hand: bytes, then their halves, the low one first."""
    figures = np.frombuffer(tensor.scales, "<f2").astype(np.float32)
    made: list[np.float32] = []
    for place, byte in enumerate(bytes(tensor.data)):
        for integer in (byte % 16, byte // 16):
            group = (2 * place) // tensor.block
            made.append(np.float32(integer) * figures[2 * group] + figures[2 * group + 1])
    return np.array(made[: math.prod(tensor.true_shape)], np.float32).reshape(tensor.true_shape)


def plain_groups(array: Array) -> Array:
    """What rounding from the least to the largest of each group comes to."""
    flat = array.reshape(-1).astype(np.float64)
    made = []
    for group in np.split(flat, range(32, flat.size, 32)):
        scale = float(np.float16(np.float32((group.max() - group.min()) / 15)))
        least = float(np.float16(group.min()))
        integers = np.clip(np.rint((group - least) / (scale or 1)), 0, 15)
        made.append(integers * scale + least)
    return np.concatenate(made).reshape(array.shape)


@given(
    dims=st.lists(st.integers(1, 40), min_size=2, max_size=3),
    seed=st.integers(0, 1000),
    around=st.sampled_from([0.0, 3.0]),
)
@example(dims=[1, 4], seed=0, around=0.0)  # what fills a group up was fitted with its elements
def test_groups_of_four_bits_lose_no_more_than_plain_rounding(
    dims: list[int], seed: int, around: float
) -> None:
    array = (around + np.random.default_rng(seed).standard_normal(dims)).astype(np.float32)
    made = RECIPES[5](1, array)
    found = dequantize(made)
    assert found.shape == array.shape
    assert scale_problem(made) is None
    np.testing.assert_array_equal(found, naive_groups(made))
    errors = [float(np.square(other - array.astype(np.float64)).sum())
              for other in (found, plain_groups(array))]  # fmt: skip
    assert errors[0] <= errors[1] * (1 + 1e-6) + 1e-12


@given(st.integers(0, 1000))
def test_a_grid_of_sixteen_values_a_group_keeps_every_bit(seed: int) -> None:
    """What GGUF's Q4_1 and Q4_0 hold."""
    chance = np.random.default_rng(seed)
    integers = chance.integers(0, 16, (64, 32)).astype(np.float32)
    integers[:, 3], integers[:, 7] = 0, 15
    figures = chance.uniform([0.001, -0.1], [0.02, 0.1], (64, 2)).astype(np.float16)
    scales, minimums = figures.astype(np.float32).T[..., None]
    array = (integers * scales + minimums).reshape(16, 128)
    np.testing.assert_array_equal(dequantize(RECIPES[5](1, array)), array)


@pytest.mark.parametrize(
    ("array", "code"),
    [
        (np.ones(64), 2),
        (np.full((2, 32), 1e5), 3),
        (np.full((2, 32), 1e-5), 3),
        (np.zeros((2, 32)), 5),
        (np.full((2, 32), 7), 5),
    ],
    ids=["one axis", "large", "small", "zeros", "one number"],
)
def test_what_has_no_place_in_groups_has_eight_bits(array: Array, code: int) -> None:
    made = RECIPES[5](1, array.astype(np.float32))
    assert made.quant == code
    np.testing.assert_allclose(dequantize(made), array, rtol=1e-6)


def test_a_table_of_rows_has_eight_bits_beside_groups(tmp_path: Path) -> None:
    chance = np.random.default_rng(4)
    builder = Builder("nacre-1")
    ids = builder.input("ids", "i64", (3,))
    table = builder.constant(chance.normal(size=(20, 64)).astype(np.float32))
    other = builder.constant(chance.normal(size=(20, 64)).astype(np.float32))
    rows = builder.add("Gather", table, ids)
    tied, inner = builder.add("Linear", rows, table), builder.add("Linear", rows, other)
    made: list[QuantisationReport] = []
    nac.build(builder.module(tied, inner), "int4_group", on_report=made.append)
    assert [row.stored for row in made[0].weights] == ["INT8_CHANNEL", "INT4_GROUP"]


@pytest.mark.parametrize("weights", ["internal", "external"])
def test_bytes_of_the_models_own_stay_beside_groups(
    weights: Literal["internal", "external"], tmp_path: Path
) -> None:
    chance = np.random.default_rng(2)
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", (2, 64))
    y = builder.add("Linear", x, builder.constant(chance.normal(size=(16, 64)).astype(np.float32)))
    table = builder.constant(chance.integers(0, 255, (2, 16)).astype(np.uint8))
    module = builder.module(y, builder.add("BinOp", table, table, op="Max"))
    model = nac.build(module, "int4_group")
    nac.save(model, tmp_path / "m.nac", weights)
    assert verify(tmp_path / "m.nac") == []
    given = {"x": chance.normal(size=(2, 64)).astype(np.float32)}
    for found, expected in zip(
        nac.load(tmp_path / "m.nac").run(given), model.run(given), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def network(**weights: Array) -> core.Module:
    """A product with each weight of two axes, and a sum with each other one."""
    builder = Builder()
    x = builder.input("x", "f32", (2, 4))
    for array in weights.values():
        value = builder.constant(array)
        if array.ndim == 2:
            x = builder.add("MatMul", x, value)
        else:
            x = builder.add("BinOp", x, value, op="Add")
    return builder.module(x)


def test_what_has_no_place_in_a_quantisation_stays() -> None:
    rng = np.random.default_rng(0)
    square = rng.standard_normal((4, 4)).astype(np.float32)
    mask = np.array([0, -np.inf, -np.inf, 0], np.float32)
    big = np.full(4, 1e30, np.float32)
    module = network(a=square, b=np.array(3, np.float32), c=mask, d=big)
    found = {}
    for option in QUANTS:
        nac.build(module, option, on_report=lambda report: found.update({report.quant: report}))
    reasons = {q: sorted(w.reason for w in r.weights if w.reason) for q, r in found.items()}
    assert reasons == {
        "FP16": ["larger than 65504", "rank 0"],
        "INT8_TENSOR": ["not finite", "rank 0"],
        "INT8_CHANNEL": ["not finite", "rank 0"],
        "BLOCK_FP8": ["not finite", "rank 0"],
    }
    text = str(found["INT8_CHANNEL"])
    assert "kept: not finite" in text
    assert "dB" in text


def test_statistics_of_norms_stay_unless_asked() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1, 4, 2, 2))
    stats = [builder.constant(np.array([1e-4, 1, 100, 1], np.float32) + i) for i in range(4)]
    module = builder.module(builder.add("BatchNorm", x, *stats, epsilon=1e-5))
    kept = nac.build(module, "int8_tensor")
    assert {tensor.quant for tensor in kept.file.data.tensors} == {0}
    assert kept.file.header.quant == 2
    every = nac.build(module, "int8_tensor", keep_norms=False)
    assert {tensor.quant for tensor in every.file.data.tensors} == {2}


def test_a_report_names_the_weight_that_lost_most() -> None:
    _, report = nac.quantise(plain(), "int8_tensor", keep=["0.weight"])
    ratios = {w.name: w.sqnr_db for w in report.weights if not w.reason}
    assert "0.weight" not in ratios
    worst = min(ratios, key=lambda name: ratios[name])
    assert report.worst is not None
    assert report.worst.name == worst
    assert str(report).endswith(f", least {ratios[worst]:.1f} dB ({worst})")
    kept = QuantisationReport("fp16", tuple(replace(w, reason="asked for") for w in report.weights))
    assert kept.worst is None
    assert "least" not in str(kept)


def test_patterns_keep_weights() -> None:
    model = plain()
    names = [p.text for p in model.file.data.parameters]
    made, report = nac.quantise(model, "int8_channel", keep=[names[0]], least_rank=2)
    kept = {w.name: w.reason for w in report.weights if w.reason}
    assert kept[names[0]] == "asked for"
    assert set(kept.values()) == {"asked for", "rank 1"}
    assert made.weights[1].dtype == np.float32
    with pytest.raises(InputError) as refused:
        nac.quantise(model, "fp16", keep=["no.such.*"])
    assert refused.value.diagnostics[0].code == "NAC50"


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="NAC50") as refused:
        nac.build(network(a=np.eye(4, dtype=np.float32)), "int8")
    assert "int8_tensor" in str(refused.value.diagnostics[0].message)
    with pytest.raises(InputError, match="NAC50"):
        nac.build(3)
    with pytest.raises(InputError, match="NAC50"):
        nac.quantise(nac.load(HOME / "mlp.FP16.v16.nac"), "fp16")
    assert len(FIXTURES) >= 7


def test_halves_of_a_model_stay_halves() -> None:
    builder = Builder()
    x = builder.input("x", "f16", (2, 2))
    half = builder.add("MatMul", x, builder.constant(np.eye(2), "f16"))
    alone = nac.build(builder.module(half), "fp16")
    assert alone.run({"x": np.ones((2, 2), np.float16)})[0].dtype == np.float16
    wide = builder.constant(np.ones((2, 2)), "f32")
    both = builder.module(builder.add("BinOp", builder.add("Cast", half, to="f32"), wide, op="Add"))
    with pytest.raises(InputError, match="NAC51") as refused:
        nac.quantise(nac.build(both), "fp16")
    (found,) = refused.value.diagnostics
    assert "`c1`" in found.message  # which
    assert found.help is not None
    assert "build" in found.help  # and what to do


def test_halves_beside_what_becomes_halves_are_cast_back() -> None:
    """Every value is as it was: those of f16 are exact in f32, those of f32 are rounded once."""
    chance = np.random.default_rng(5)
    own, wide = chance.normal(size=(3, 3)), chance.normal(size=(3, 3)).astype(np.float32)
    builder = Builder()
    x = builder.input("x", "f16", (2, 3))
    half = builder.add("MatMul", x, builder.constant(own, "f16"))
    outer = builder.add("MatMul", builder.add("Cast", half, to="f32"), builder.constant(wide))
    reports: list[QuantisationReport] = []
    module = builder.module(half, outer)
    module = replace(module, labels=Labels(nodes={1: "own", 4: "wide"}))
    model = nac.build(module, "fp16", on_report=reports.append)
    assert verify(to_bytes(model.file)) == []
    assert model.file.header.quant == 1
    assert {t.dtype for t in model.file.data.tensors} == {2}
    rows = {row.name: row for row in reports[0].weights}
    assert sorted(rows) == ["own", "wide"]
    assert rows["own"].max_error == 0
    given = chance.normal(size=(2, 3)).astype(np.float16)
    first, second = model.run({"x": given})
    plain, _ = nac.build(module).run({"x": given})
    assert first.dtype == np.float16
    np.testing.assert_array_equal(first, plain)
    expected = first.astype(np.float32) @ wide.astype(np.float16).astype(np.float32)
    np.testing.assert_allclose(second, expected, rtol=1e-5, atol=1e-6)
    again = nac.build(nac.lift(model))
    np.testing.assert_array_equal(again.run({"x": given})[0], first)


@pytest.mark.parametrize("option", [*QUANTS, "int4_group"])
def test_what_is_quantised_already_is_left_alone(option: str) -> None:
    """Integers between Quantize and Dequantize, their scales and zero points keep every bit."""
    chance = np.random.default_rng(9)
    stored = chance.integers(-128, 128, (4, 6)).astype(np.int8)
    scales = chance.uniform(0.01, 0.02, 4).astype(np.float32)
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", (2, 6))
    step, zero = builder.constant(np.float32(0.037)), builder.constant(np.int8(3))
    q = builder.add("Quantize", x, step, zero, to="i8")
    values = builder.add("Dequantize", q, step, zero)
    places = (
        builder.constant(stored),
        builder.constant(scales),
        builder.constant(np.zeros(4, np.int8)),
    )
    weights = builder.add("Dequantize", *places, axis=0)
    plain = builder.constant(chance.normal(size=(3, 4)).astype(np.float32))
    inner = builder.add("Linear", values, weights)
    module = builder.module(inner, builder.add("Linear", inner, plain))
    rows: list[QuantisationReport] = []
    model = nac.build(module, option, on_report=rows.append)
    kept = [row.reason for row in rows[0].weights if row.stored == "kept"]
    assert kept.count("of a quantisation") == 1  # the scales: one number has no axes
    assert [row.stored for row in rows[0].weights].count("kept") == len(rows[0].weights) - 1
    given = chance.normal(size=(2, 6)).astype(np.float32)
    exact, _ = nac.build(module).run({"x": given})
    np.testing.assert_array_equal(model.run({"x": given})[0], exact)


@pytest.mark.parametrize("option", ["int8_tensor", "int8_channel", "block_fp8", "int4_group"])
def test_the_mask_of_an_attention_stays(option: str) -> None:
    """The least number of f32: 127 times its scale would be infinite."""
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", (1, 2))
    mask = builder.constant(np.array([[np.finfo(np.float32).min, 0]], np.float32))
    model = nac.build(builder.module(builder.add("BinOp", x, mask, op="Add")), quant=option)
    (found,) = model.run({"x": np.ones((1, 2), np.float32)})
    np.testing.assert_array_equal(found, [[np.finfo(np.float32).min, 1]])
