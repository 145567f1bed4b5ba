"""Ports of bundles: the model's own values go in and come out, as `Bundle.run` has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.bundle.manifest import Port as BundlePort
from nacre.core.builder import Builder
from nacre.tcb.image import Image, Port
from nacre.tcb.machine.host_arrays import host_array, to_memory
from tests.effort import scaled
from tests.tcb.machine.images import image as small_image
from tests.tcb.machine.images import stream

RNG = np.random.default_rng(5)


def bundle_of(precision: str) -> nacre.Bundle:
    build = Builder()
    x = build.input("x", "f32", (4, 16))
    weights = RNG.normal(size=(8, 16)).astype(np.float32)
    out = build.add("ReluNan", build.add("Linear", x, build.constant(weights)))
    sets = [{"x": RNG.normal(size=(4, 16)).astype(np.float32)} for _ in range(4)]
    if precision == "f16":
        return nacre.compile(build.module(out), "npm4k")
    return nacre.compile(build.module(out), "npm4k", precision="i8", calibration=sets)


@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_an_image_takes_and_gives_what_its_bundle_does(precision: str, tmp_path: Path) -> None:
    bundle = bundle_of(precision)
    image = nacre.bind(bundle)
    assert image.verify(bundle) == []
    (port, *_) = image.image.ports
    assert (port.elem, port.host_elem) == (precision, "f32")
    assert len(port.scales) == len(port.zero_points) == (precision == "i8")
    image.save(tmp_path / "b.tcb")
    again = nacre.TcbImage.load(tmp_path / "b.tcb")
    assert (again.text, again.image.ports) == (image.text, image.image.ports)
    x = RNG.normal(size=(4, 16)).astype(np.float32)
    expected = bundle.run({"x": x})
    for seed in (None, 1):
        found = again.run({"x": x}, seed=seed).outputs
        assert found.keys() == expected.keys()
        for name, array in found.items():
            assert array.dtype == expected[name].dtype
            np.testing.assert_array_equal(array, expected[name])
    stored = bundle.manifest.inputs[0].to_memory(x)
    assert again.run({"x": stored}).read("x") == again.run({"x": x}).read("x")


def test_what_fits_neither_is_refused() -> None:
    image = nacre.bind(bundle_of("f16"))
    with pytest.raises(InputError, match="takes f32 or f16"):
        image.run({"x": np.zeros((4, 16))})


values = st.floats(width=32) | st.floats(-1e3, 1e3, width=32)


@settings(max_examples=scaled(60), deadline=None)
@given(
    st.lists(values, min_size=4, max_size=4),
    st.sampled_from(["f16", "bf16", "i8"]),
    st.sampled_from([0.003, 0.25, 7.0]),
    st.integers(-128, 127),
)
def test_values_are_stored_as_bundles_store_them(
    given_values: list[float], elem: str, scale: float, zero: int
) -> None:
    is_quantised = elem == "i8"
    mine = BundlePort("x", "b", "f32", elem, (4,), *((scale, zero) if is_quantised else ()))
    size = 4 if is_quantised else 8
    more = ((scale,), (zero,)) if is_quantised else ()
    port = Port("in", "input", "DDR", 0, size, elem, (4,), "f32", *more)
    image = small_image(stream())
    changed = Image(image.entry, image.machine, (), (port,), ())
    array = np.array(given_values, np.float32)
    made = to_memory(changed, {"in": array})["in"]
    expected = mine.to_memory(array)
    assert made == expected.tobytes()
    np.testing.assert_array_equal(host_array(port, bytes(made)), mine.real(expected))


def test_integers_that_have_no_place_are_refused() -> None:
    port = Port("in", "input", "DDR", 0, 8, "i32", (2,), "i64")
    image = small_image(stream())
    changed = Image(image.entry, image.machine, (), (port,), ())
    assert to_memory(changed, {"in": np.array([1, -2])})["in"] == np.array([1, -2], "<i4").tobytes()
    with pytest.raises(InputError, match="TCB58"):
        to_memory(changed, {"in": np.array([1, 1 << 40])})


def test_findings_of_a_bundle_stand_in_the_file_of_its_program(tmp_path: Path) -> None:
    bundle_of("f16").save(tmp_path / "b")
    uarch = tmp_path / "one.uarch"
    uarch.write_text("uarch one { tags { engine = 1 } }")
    with pytest.raises(InputError) as raised:
        nacre.bind(tmp_path / "b", uarch)
    (finding,) = raised.value.diagnostics
    assert finding.code == "BND01"
    assert finding.span.source.name == str(tmp_path / "b" / "model.nem")
