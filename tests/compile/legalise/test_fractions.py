"""Coordinates keep their digits: the fraction of a pixel is found before the offset is added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nacre
from nacre.core.builder import Builder
from tests.compile.legalise.checking import legal_of, run
from tests.compile.legalise.samples import Array

A, B = 28.0, 27.5  # of an image 56 pixels wide


def coordinates(is_held: bool, is_factored: bool, turned: bool) -> Any:  # noqa: ANN401 - a module
    builder = Builder()
    x = builder.input("x", "f32", (8, 50))
    if is_factored:  # the offset first
        moved = builder.add("BinOp", x, builder.constant(np.float32(B / A)), op="Add")
        v = builder.add("BinOp", moved, builder.constant(np.float32(A)), op="Mul")
    else:
        scaled = builder.add("BinOp", x, builder.constant(np.float32(A)), op="Mul")
        v = builder.add("BinOp", scaled, builder.constant(np.float32(B)), op="Add")
    if is_held:
        v = builder.add("Clip", v, min=0.0, max=55.0)
    whole = builder.add("Unary", v, op="Floor")
    if not turned:
        return builder.module(whole, builder.add("BinOp", v, whole, op="Sub"))
    end = builder.add("BinOp", whole, builder.constant(np.float32(1)), op="Add")
    return builder.module(end, builder.add("BinOp", end, v, op="Sub"))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("is_factored", [False, True])
@pytest.mark.parametrize("is_held", [False, True])
def test_a_place_in_f16_is_as_good_as_its_coordinate(
    is_held: bool, is_factored: bool, turned: bool
) -> None:
    module = coordinates(is_held, is_factored, turned)
    x = np.random.default_rng(2).uniform(-0.99, 0.99, (8, 50))
    given = {"x": x.astype(np.float16).astype(np.float32)}
    places: dict[str, Array] = {}
    for name, precision in (("exact", "f32"), ("found", "f16")):
        made = legal_of(module, precision).module
        whole, fraction = (y.astype(np.float64) for y in run(made, given))
        places[name] = whole - fraction if turned else whole + fraction
    expected = given["x"].astype(np.float64) * A + B
    expected = np.clip(expected, 0, 55) if is_held else expected
    np.testing.assert_allclose(places["exact"], expected, atol=1e-4)
    error = np.abs(places["found"] - expected)
    # Where a held place is rounded to the next pixel, it stays there: at most 1/64 further off.
    assert float(np.quantile(error, 0.95 if is_held else 1)) <= 2**-6 / 2
    assert float(error.max()) <= 3 / 128


def test_a_whole_part_and_its_fraction_belong_together() -> None:
    """Just below a pixel the fraction is nearly 1, where f16 alone would be at the pixel."""
    builder = Builder()
    x = builder.input("x", "f32", (2, 4))
    scaled = builder.add("BinOp", x, builder.constant(np.float32(32)), op="Mul")
    v = builder.add("BinOp", scaled, builder.constant(np.float32(31.5)), op="Add")
    whole = builder.add("Unary", v, op="Floor")
    module = builder.module(whole, builder.add("BinOp", v, whole, op="Sub"))
    given = {"x": np.full((2, 4), (54.984 - 31.5) / 32).astype(np.float16).astype(np.float32)}
    found = list(nacre.compile(module, "npm4k").run(given).values())
    exact = float(given["x"][0, 0]) * 32 + 31.5
    assert np.floor(exact) == 54
    np.testing.assert_array_equal(found[0], 54)
    np.testing.assert_allclose(found[1], exact - 54, atol=1e-3)


@pytest.mark.heavy("compiles networks")
@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("padding", "corners"), [("zeros", True), ("border", True), ("border", False)]
)
def test_a_picture_is_sampled(padding: str, corners: bool) -> None:
    torch = pytest.importorskip("torch")

    class Sampled(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, grid: Any) -> Any:  # noqa: ANN401 - torch's own types
            return torch.nn.functional.grid_sample(
                x, grid, padding_mode=padding, align_corners=corners
            )

    down, across = torch.meshgrid(torch.linspace(0, 3, 40), torch.linspace(0, 4, 56), indexing="ij")
    picture = torch.stack([torch.sin(across * (1 + k / 4) + down) for k in range(4)])[None]
    grid = torch.rand(1, 20, 24, 2, generator=torch.Generator().manual_seed(3)) * 2 - 1
    bundle = nacre.compile(Sampled(), "npm4k", example_args=(picture, grid))
    names = list(bundle.source.input_types)
    feeds = dict(zip(names, (picture.numpy(), grid.numpy()), strict=True))
    validation = bundle.validate(feeds, [Sampled()(picture, grid).numpy()])
    assert validation.ok, str(validation)
    assert max(validation.error_by_output.values()) <= 5e-3
