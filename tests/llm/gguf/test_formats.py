"""Every type of tensors, bit for bit as the package `gguf` has it."""

from __future__ import annotations

import numpy as np
import pytest

from nacre.llm.gguf.formats import FORMATS, Format, dequantise

BLOCKS = 200
# Of these the package has the layout and no function, or not even that: by hand, below.
BY_HAND = {"Q8_K", "I8", "I16", "I32", "I64", "F64"}


def random_blocks(format_: Format) -> np.ndarray:
    draw = np.random.default_rng(format_.number)
    return draw.integers(0, 256, (BLOCKS, format_.size_bytes), dtype=np.uint8)


@pytest.mark.parametrize("number", FORMATS, ids=[f.name for f in FORMATS.values()])
def test_a_block_is_as_long_as_the_package_says(number: int) -> None:
    gguf = pytest.importorskip("gguf")
    of = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(number)]
    format_ = FORMATS[number]
    assert (format_.elements, format_.size_bytes) == of
    assert gguf.GGMLQuantizationType(number).name == format_.name


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [f.name for f in FORMATS.values() if f.name not in BY_HAND])
def test_random_bits_mean_what_they_mean_to_the_package(name: str) -> None:
    gguf = pytest.importorskip("gguf")
    format_ = next(f for f in FORMATS.values() if f.name == name)
    raw = random_blocks(format_)
    expected = gguf.dequantize(raw, gguf.GGMLQuantizationType(format_.number)).reshape(-1)
    found = dequantise(raw.view(format_.layout).reshape(-1), format_)
    assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_eight_bits_with_sums_are_scaled() -> None:
    format_ = FORMATS[15]
    block = np.zeros(1, format_.layout)
    block["d"], block["qs"], block["sums"] = 0.5, np.arange(-128, 128), 999
    assert np.array_equal(dequantise(block, format_), np.arange(-128, 128) * np.float32(0.5))


@pytest.mark.parametrize("name", ["I8", "I16", "I32", "I64", "F64"])
def test_numbers_are_rounded_to_the_nearest(name: str) -> None:
    format_ = next(f for f in FORMATS.values() if f.name == name)
    values = np.array([0, 1, -1, 127, -128], format_.layout["x"])
    assert dequantise(values.view(format_.layout), format_).tolist() == [0, 1, -1, 127, -128]


def test_many_blocks_are_decoded_in_parts() -> None:
    format_ = FORMATS[12]
    raw = np.tile(random_blocks(format_), (50, 1)).view(format_.layout).reshape(-1)
    once = dequantise(raw[:BLOCKS], format_)
    assert np.array_equal(
        dequantise(raw, format_).view(np.uint32), np.tile(once.view(np.uint32), 50)
    )
