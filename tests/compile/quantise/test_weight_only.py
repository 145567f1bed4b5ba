"""Plans of `w8f16` and `w4f16`: beside loops over integers, and in few bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.options import Precision
from nacre.core.builder import Builder
from nacre.core.constants import constant_array
from nacre.core.module import Module
from tests.compile.models import Array, inputs_of, linear_model, require_any_order, values

pytestmark = pytest.mark.sampled(2)  # together they take long

DEPTH, COLUMNS = 256, 80


def stored_weights(module: Module) -> tuple[Array, Array, int]:
    """Integers, scales and the size of groups of the only product of a legal module."""
    (product,) = (op for op in module.operations if op.opcode == "Linear")
    grouped = module.by_id[product.operands[1]]
    integers, scales = (constant_array(module.by_id[value]) for value in grouped.operands)
    assert integers is not None
    assert scales is not None
    assert module.by_id[grouped.operands[0]].type.dtype in ("i4", "i8")
    return integers, scales, integers.shape[1] // scales.shape[1]


def by_hand(x: Array, integers: Array, scales: Array, group: int) -> Array:
    """A product by integers in groups, in f64; weights are rounded to f16, as in a tile."""
    made = np.zeros((len(x), len(integers)))
    for column, row in enumerate(integers.tolist()):
        weights = [
            np.float16(np.float32(integer) * np.float32(scales[column, at // group]))
            for at, integer in enumerate(row)
        ]
        made[:, column] = x.astype(np.float64) @ np.array(weights, np.float64)
    return made


@pytest.mark.parametrize(
    ("device", "rows", "precision", "group"),
    [
        ("npm4k", 1, "w4f16", 64),
        ("npm4k", 40, "w4f16", 128),
        ("npm_lite", 1, "w8f16", 32),
        ("npm_pro", 24, "w4f16", 32),
    ],
)
def test_a_product_is_that_of_its_integers_and_its_plan_is_sound(
    device: str, rows: int, precision: Precision, group: int
) -> None:
    module = linear_model(rows, DEPTH, COLUMNS, bias=False, relu=False)
    bundle = nacre.compile(module, device, precision, group_size=group)
    feeds = inputs_of(module)
    assert bundle.validate(feeds).ok
    assert {d.severity for d in nacre.nem.check(bundle.program, strict=True)} <= {"info"}
    integers, scales, size = stored_weights(bundle.legal)
    assert size == group
    found = bundle.run(feeds)["output0"].astype(np.float64)
    expected = by_hand(feeds["x"].astype(np.float16), integers, scales, group)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)
    require_any_order(bundle, feeds, 6)


def test_weights_take_their_bits_and_their_scales() -> None:
    module = linear_model(1, 512, 768, bias=False, relu=False)
    for precision, bits in (("w4f16", 4), ("w8f16", 8)):
        bundle = nacre.compile(module, "npm4k", precision, group_size=128)  # type: ignore[arg-type]
        ideal = 512 * 768 * (bits + 16 / 128) / 8
        assert ideal <= len(bundle.weights) <= 1.03 * ideal
        assert f"elem=i{bits}" in bundle.program
        (loss,) = bundle.manifest.losses
        assert loss.sqnr > 6 * bits - 6


def test_names_of_others_are_ours(tmp_path: Path) -> None:
    module = linear_model(1, 128, 64)
    one, other = (nacre.compile(module, "npm4k", name) for name in ("w4f16", "w4a16"))  # type: ignore[arg-type]
    assert one.program == other.program
    assert other.manifest.precision == "w4f16"


def test_a_bundle_keeps_packed_weights_once(tmp_path: Path) -> None:
    bundle = nacre.compile(linear_model(1, 256, 512, bias=False), "npm4k", "w4f16")
    bundle.save(tmp_path / "bundle", reference=False)
    arrays = (path.stat().st_size for path in (tmp_path / "bundle").glob("*.safetensors"))
    assert sum(arrays) < 1.02 * len(bundle.weights) + 1000
    again = Bundle.load(tmp_path / "bundle")
    assert again.weights == bundle.weights
    assert again.validate(inputs_of(bundle.source)).ok


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"precision": "w4f16", "group_size": 48}, "`group_size` is 48, expected one of 32, 64"),
        ({"precision": "f16", "group_size": 32}, "`group_size` is for w8f16 and w4f16"),
        ({"precision": "w4f16", "precision_map": {"*": "f16"}}, "a precision map is for i8"),
        ({"precision": "w3f16"}, "no precision `w3f16`"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        nacre.compile(linear_model(1, 128, 64), "npm4k", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("depth", "columns", "note"),
    [(32, 16, "no weights are integers"), (97, 64, "1 product keeps its weights of f16")],
)
def test_products_that_keep_their_weights_are_in_a_note(
    depth: int, columns: int, note: str
) -> None:
    bundle = nacre.compile(linear_model(4, depth, columns), "npm4k", "w4f16")
    assert bundle.manifest.losses == ()
    assert any(note in one for one in bundle.manifest.notes)


def test_bounds_count_packed_bytes() -> None:
    module = linear_model(1, 512, 768, bias=False, relu=False)
    wide = nacre.estimate(module, "npm4k")
    narrow = nacre.estimate(module, "npm4k", "w4f16", group_size=128)
    assert wide.bounds is not None
    assert narrow.bounds is not None
    ends = 2 * (512 + 768)  # of the input and the output, which stay f16
    assert narrow.bounds.layers[0].ddr_bytes == 512 * 768 * 33 // 64 + ends
    assert wide.bounds.layers[0].ddr_bytes == 512 * 768 * 2 + ends
    assert narrow.plan is not None
    assert narrow.plan.ideal.cycles < 0.4 * wide.plan.ideal.cycles  # type: ignore[union-attr]


def test_what_runs_by_name_stays_so() -> None:
    """Numbers of values change where weights become integers; an escape is known by its number."""
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", (2, 128))
    first = builder.add("Linear", x, builder.constant(values((64, 128), 1, 0.1)))
    sums = builder.add("CumSum", first, axis=1)
    last = builder.add("Linear", sums, builder.constant(values((96, 64), 2, 0.1)))
    module = builder.module(last)
    bundle = nacre.compile(module, "npm4k", "w4f16", group_size=32)
    assert [line for layer in bundle.manifest.layers for line in layer.escaped]
    assert len(bundle.manifest.losses) == 2
    assert bundle.validate(inputs_of(module)).first_difference is None


@pytest.mark.parametrize("precision", ["w8f16", "w4f16"])
def test_products_of_f32_chains_keep_their_weights(precision: Precision) -> None:
    """Their parts are halves of weights and corrections, which as integers would be noise."""
    builder = Builder()
    x = builder.input("x", "f32", (2, 64))
    first = builder.add("Linear", x, builder.constant(values((64, 64), 1, 0.1)))
    wave = builder.constant(values((96, 64), 2, 1e-3))
    heard = builder.add("Linear", builder.add("Relu", first), wave)
    power = builder.add("BinOp", heard, heard, op="Mul")
    above = builder.add("BinOp", power, builder.constant(np.float32(1e-10)), op="Add")
    features = builder.add("Log", above)
    last = builder.add("Linear", features, builder.constant(values((64, 96), 3, 0.1)))
    bundle = nacre.compile(builder.module(features, last), "npm4k", precision)
    integers = [op for op in bundle.legal.operations if op.opcode == "Dequantize"]
    assert integers  # of the other products
    for size in (1.0, 1e-2):
        feeds = {"x": values((2, 64), 5, size)}
        found = bundle.run(feeds)["output0"]
        (wanted, _) = nacre.core.evaluate(bundle.source, feeds)
        assert np.isfinite(found).all()
        assert np.median(np.abs(found - wanted)) < (0.1 if precision == "w8f16" else 1.0)
