"""Where a message says that something is wrong: the model's file, the node, the device's file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre import core
from nacre.base.diagnostics import Diagnostic, InputError
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import linear_model


def refused(source: object, device: str = "npm4k", **more: object) -> Diagnostic:
    with pytest.raises(InputError) as caught:
        nacre.compile(source, device, **more)  # type: ignore[arg-type]
    return caught.value.diagnostics[0]


def test_a_device_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "device.nem"
    path.write_bytes(b"\x7fELF\xff\xfe")
    found = refused(linear_model(8, 16, 16), str(path))
    assert found.code == "CMP04"
    assert found.span.source.name == str(path)
    assert "device.nem` cannot be read as a device: byte 0xff at offset 4" in found.message


def test_the_model_whose_memory_is_too_small_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.core"
    core.save(linear_model(8, 16, 16), path)
    found = refused(path, ddr_bytes=64)
    assert (found.code, found.span.source.name) == ("CMP05", str(path))
    assert refused(linear_model(8, 16, 16), ddr_bytes=64).span.source.name == "<module>"


def long_row() -> Module:
    builder = Builder()
    x = builder.input("x", "f32", (2, 600_000))
    return builder.module(builder.add("CumSum", x, axis=1))


def test_what_runs_by_name_and_does_not_fit_says_which_operand() -> None:
    found = refused(long_row())
    assert found.code == "CMP02"
    assert found.message == (
        "`cumsum_0` does not fit in the 1048576 bytes of L1: the smallest part that can be "
        "computed by itself holds operand 0, f16[1, 600000], 1200000 bytes; the result, "
        "f16[1, 600000], 1200000 bytes"
    )


def test_a_transposition_behind_a_view_of_what_is_made_in_its_place() -> None:
    """Heads of an attention, of a batch of two: the product is written where they will lie."""
    builder = Builder()
    q = builder.input("q", "f32", (8, 17, 16))
    k = builder.input("k", "f32", (8, 16, 17))
    made = builder.add("MatMul", builder.add("MatMul", q, k), q)
    heads = builder.add("Reshape", made, new_shape=(2, 4, 17, 16))
    turned = builder.add("Transpose", heads, permutation=(2, 0, 1, 3))
    rows = builder.add("Reshape", turned, new_shape=(34, 64))
    weights = builder.constant(np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64))
    module = builder.module(builder.add("Linear", rows, weights))
    random = np.random.default_rng(0)
    feeds = {
        "q": random.standard_normal((8, 17, 16)).astype(np.float32),
        "k": random.standard_normal((8, 16, 17)).astype(np.float32),
    }
    assert nacre.compile(module, "npm16k").validate(feeds).ok
