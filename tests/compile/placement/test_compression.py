"""Weights that are stored compressed: the same numbers, fewer bytes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre import core
from nacre.base.diagnostics import InputError
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.options import Compress, Precision
from nacre.compile.quantise.clustering import clustered_elements
from nacre.core.module import Module
from nacre.core.values import Array
from nacre.nem.api.documents import check

pytestmark = pytest.mark.sampled(2)  # together they take long


def network(kind: str, *, inner: int = 192, bias: bool = True) -> Module:
    """Two products, of weights that are ordinary, pruned or of a few values."""
    rng = np.random.default_rng(5)
    builder = core.Builder("core-v1")

    def weights(*shape: int) -> int:
        array = (rng.normal(size=shape) * 0.05).astype(np.float32)
        if kind == "pruned":
            array = np.where(rng.random(shape) < 0.15, array, np.float32(0))
        elif kind == "clustered":
            array = rng.choice(array.reshape(-1)[:13], shape)
        return builder.constant(array)

    x = builder.input("x", "f32", (8, 64))
    inside = builder.add("MatMul", x, weights(64, inner))
    if bias:
        offsets = builder.constant(rng.normal(size=(inner,)).astype(np.float32))
        inside = builder.add("BinOp", inside, offsets, op="Add")
    return builder.module(builder.add("MatMul", builder.add("Relu", inside), weights(inner, 128)))


def given() -> dict[str, Array]:
    return {"x": np.random.default_rng(9).normal(size=(8, 64)).astype(np.float32)}


def compiled(
    kind: str, device: str, compress: Compress | None, precision: Precision = "f16"
) -> Bundle:
    inputs = np.random.default_rng(2).normal(size=(4, 8, 64)).astype(np.float32)
    data = {"x": inputs} if precision == "i8" else None
    return nacre.compile(network(kind), device, precision, compress=compress, calibration=data)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("precision", ["f16", "i8"])
@pytest.mark.parametrize(("kind", "form"), [("pruned", "sparse"), ("clustered", "palette(")])
@pytest.mark.parametrize("device", ["npm_pro", "npm16k"])
def test_numbers_stay_and_bytes_go(device: str, kind: str, form: str, precision: Precision) -> None:
    plain, small = (compiled(kind, device, how, precision) for how in (None, "exact"))
    found = small.manifest.compression
    assert found is not None
    assert f"compressed={form}" in small.program
    assert 0 < found.blocks == found.of
    # Parts end on boundaries of 64 bytes.
    assert len(plain.weights) - found.saved_bytes - len(small.weights) + 64 * found.of >= 0
    assert len(small.weights) < 0.75 * len(plain.weights)
    for name, array in plain.run(given()).items():
        assert np.array_equal(small.run(given())[name], array)
    assert small.validate(given()).ok
    assert {d.code for d in check(small.program, strict=True)} == {"WDM01"}


def test_what_gets_no_smaller_stays_as_it_is() -> None:
    plain, same = (compiled("ordinary", "npm_pro", how) for how in (None, "exact"))
    assert same.program == plain.program
    assert same.weights == plain.weights
    found = same.manifest.compression
    assert found is not None
    assert (found.blocks, found.saved_bytes) == (0, 0)


def test_a_bundle_holds_the_compressed_bytes(tmp_path: Path) -> None:
    small = compiled("clustered", "npm_pro", "exact")
    small.save(tmp_path / "b")
    again = Bundle.load(tmp_path / "b")
    assert again.weights == small.weights
    assert again.manifest.compression == small.manifest.compression
    assert np.array_equal(again.run(given())["output0"], small.run(given())["output0"])
    bounds = again.estimate().bounds
    assert bounds is not None
    assert bounds.floor <= again.time().cycles


@pytest.mark.parametrize("device", ["npm_lite", "npm4k", "nem_reference"])
def test_a_device_that_cannot_is_refused(device: str) -> None:
    with pytest.raises(InputError) as refused:
        compiled("pruned", device, "exact")
    assert [d.code for d in refused.value.diagnostics] == ["CMP14"]
    assert "WDM" in str(refused.value)


def test_a_word_that_is_none_is_refused() -> None:
    with pytest.raises(
        InputError, match="`compress` is 'gzip', expected None or 'exact' or 'cluster'"
    ):
        compiled("pruned", "npm_pro", "gzip")  # type: ignore[arg-type]


def test_engines_that_share_a_block_have_it_brought_once() -> None:
    small = compiled("clustered", "npm_pro", "exact")
    names = [task["name"] for task in small.time().tasks if "WDM" in task["unit"]]
    brought = [task["name"] for task in small.time().tasks if "_z" in task["name"]]
    assert len(brought) == len(set(brought))
    assert 0 < len(brought) <= len(names)


def test_clustered_weights_are_judged_as_integers_are() -> None:
    plain, small = (compiled("ordinary", "npm_pro", how) for how in (None, "cluster"))
    found = small.manifest.compression
    assert found is not None
    assert found.clustered == 2
    assert found.blocks == found.of
    assert len(small.weights) < 0.5 * len(plain.weights)
    assert any("2 of 2 weights have 16 values at most" in note for note in small.manifest.notes)
    judged = small.validate(given())
    assert judged.ok
    assert [output.measure for output in judged.outputs] == ["SQNR"]


def test_a_bound_that_clusters_miss_leaves_weights_as_they_are() -> None:
    data = {"x": np.random.default_rng(2).normal(size=(4, 8, 64)).astype(np.float32)}
    strict = nacre.compile(
        network("ordinary"), "npm_pro", "i8", compress="cluster", calibration=data, accuracy_db=35
    )
    found = strict.manifest.compression
    assert found is not None
    assert found.clustered == 0
    assert any("no weights are clustered" in note for note in strict.manifest.notes)
    kept = nacre.compile(network("ordinary"), "npm_pro", "i8", compress="cluster", calibration=data)
    assert kept.manifest.compression is not None
    assert kept.manifest.compression.clustered == 2
    assert kept.validate(given()).ok


def test_clusters_of_floats_are_held_to_the_bound_that_is_asked_for() -> None:
    data = {"x": np.random.default_rng(2).normal(size=(4, 8, 64)).astype(np.float32)}
    asked = {"compress": "cluster", "calibration": data}
    for bound, count in ((10.0, 2), (80.0, 0)):
        made = nacre.compile(network("ordinary"), "npm_pro", accuracy_db=bound, **asked)  # type: ignore[arg-type]
        found = made.manifest.compression
        assert found is not None
        assert (found.clustered, made.manifest.accuracy_db) == (count, bound)
        assert not any("calibration data is not used" in note for note in made.manifest.notes)
        assert made.validate(given()).ok
    for how in (None, "exact"):
        with pytest.raises(nacre.InputError, match="`accuracy_db` is for integers"):
            nacre.compile(network("ordinary"), "npm_pro", accuracy_db=30.0, compress=how)


def test_k_means_takes_the_nearest_of_its_centres() -> None:
    rng = np.random.default_rng(4)
    for dtype in (np.float16, np.float32, np.int8):
        array = (rng.normal(size=(40, 50)) * 30).astype(dtype)
        array[rng.random(array.shape) < 0.3] = 0
        made = clustered_elements(array, 16)
        values = np.unique(made.astype(np.float64))
        assert made.dtype == array.dtype
        assert values.size <= 16
        assert np.array_equal(made == 0, array == 0) or dtype == np.int8
        off = np.abs(made.astype(np.float64) - array.astype(np.float64))
        others = values[values != 0]
        nearest = np.abs(others[:, None, None] - array.astype(np.float64)[None]).min(axis=0)
        assert (off[array != 0] <= nearest[array != 0] + 1).all()
    few = np.array([1, 2, 2, 1], np.float16)
    assert clustered_elements(few, 2) is few


def test_what_waits_in_a_small_l2_takes_turns(tmp_path: Path) -> None:
    device = tmp_path / "small.nem"
    device.write_text(
        'include "npm_pro.nem"\n'
        "device small extends npm_pro {\n"
        "    topology {\n"
        "        num_engines = 2 l2_size_bytes = 16384 device_units { sDMA = 2 WDM = 2 }\n"
        "        per_engine { NMU = 1 CSTL = 2 DMA = 2 VPU = 1 SEQ = 1 l1_size_bytes = 32768 }\n"
        "    }\n"
        "}\n"
    )
    module = network("clustered", inner=320)
    plain, small = (nacre.compile(module, device, compress=how) for how in (None, "exact"))
    found = small.manifest.compression
    assert found is not None
    assert found.blocks > 4
    waiting = small.buffer_sizes["compressed_L2"]
    assert 0 < waiting < len(small.weights)  # so places are used again
    assert np.array_equal(small.run(given())["output0"], plain.run(given())["output0"])
    assert small.validate(given()).ok


def test_windows_are_compressed_as_products_are() -> None:
    rng = np.random.default_rng(8)
    builder = core.Builder("nacre-1")
    x = builder.input("x", "f32", (1, 16, 12, 12))
    filters = np.where(rng.random((32, 16, 3, 3)) < 0.2, rng.normal(size=(32, 16, 3, 3)), 0)
    weights = builder.constant(filters.astype(np.float32))
    offsets = builder.constant(rng.normal(size=(32,)).astype(np.float32))
    module = builder.module(builder.add("Conv", x, weights, offsets, pads=(1, 1, 1, 1)))
    inputs = {"x": rng.normal(size=(1, 16, 12, 12)).astype(np.float32)}
    plain, small = (nacre.compile(module, "npm16k", compress=how) for how in (None, "exact"))
    assert "compressed=sparse" in small.program
    assert np.array_equal(small.run(inputs)["output0"], plain.run(inputs)["output0"])
    assert small.validate(inputs).ok
