"""Blocks that stay integers: they mean what dequantised weights do, and plans have them as such."""

from __future__ import annotations

import numpy as np
import pytest

from nacre.core.constants import constant_array
from nacre.core.grouped_weights import grouped_weights_of
from nacre.core.module import Module
from nacre.core.verify import verify
from nacre.llm.bundle.llm_bundle import build
from nacre.llm.gguf.file import GgufFile, parse_gguf
from nacre.llm.gguf.formats import FORMATS
from nacre.llm.gguf.kept_blocks import kept_blocks
from nacre.llm.model.runner import Decoder
from tests.llm.gguf_bytes import Tensor, f32_tensor, gguf_bytes
from tests.llm.letters import LETTER_KEYS
from tests.llm.reference import Sizes, keys_of, random_weights

pytestmark = pytest.mark.sampled(2)  # together they take long

SIZES = Sizes(layers=1, width=64, heads=4, kv_heads=2, ff=96, vocabulary=29, context=32)
NUMBERS = {format_.name: format_ for format_ in FORMATS.values()}
KEPT = ("Q4_0", "Q4_1", "Q8_0")


def in_blocks(name: str, shape: tuple[int, ...], type_: str, draw: np.random.Generator) -> Tensor:
    """A matrix of random blocks."""
    format_ = NUMBERS[type_]
    blocks = np.zeros(shape[0] * shape[1] // format_.elements, format_.layout)
    raw = np.frombuffer(draw.bytes(blocks.nbytes), format_.layout)
    blocks["qs"] = raw["qs"]
    spread = 0.02 if type_ != "Q8_0" else 0.001
    blocks["d"] = spread * (1 + draw.random(len(blocks)))
    if type_ == "Q4_1":
        blocks["m"] = -8 * blocks["d"].astype(np.float32) * (1 + 0.1 * draw.random(len(blocks)))
    return Tensor(name, shape[::-1], format_.number, blocks.tobytes())


def model(type_: str) -> GgufFile:
    """The model of letters with its matrices in blocks."""
    draw = np.random.default_rng(3)
    tensors = [
        in_blocks(name, array.shape, type_, draw)
        if array.ndim == 2 and not name.startswith("token_embd")
        else f32_tensor(name, array)
        for name, array in random_weights(SIZES).items()
    ]
    return parse_gguf(gguf_bytes([*keys_of(SIZES), *LETTER_KEYS], tensors), f"{type_}.gguf")


@pytest.mark.parametrize("type_", KEPT)
def test_blocks_mean_what_dequantised_weights_do(type_: str) -> None:
    file = model(type_)
    name = "blk.0.ffn_up.weight"
    kept = kept_blocks(file, name)
    assert kept is not None
    read = kept.rows(np.array([5, 2])).read()
    real = read.integers.astype(np.float32) * read.scales.repeat(read.group, axis=1)
    if read.minimums is not None:
        real = real + read.minimums.repeat(read.group, axis=1)
    assert np.array_equal(real, file.tensor(name)[[5, 2]])


def test_other_types_are_not_kept() -> None:
    file = model("Q4_0")
    assert kept_blocks(file, "blk.0.attn_norm.weight") is None
    assert kept_blocks(file, "token_embd.weight") is None


@pytest.mark.parametrize("type_", KEPT)
def test_a_step_by_blocks_gives_the_same_logits(type_: str) -> None:
    decoder = Decoder.from_gguf(model(type_))
    given = {"tokens": np.array([3], np.int32), "position": np.array([0], np.int32)}
    results = []
    for keeps_blocks in (False, True):
        module = decoder.step(16, keeps_blocks=keeps_blocks).module
        assert verify(module, profile="nacre-1") == []
        caches = {
            name: np.zeros(kind.shape, np.float32)
            for name, kind in module.input_types.items()
            if name.startswith("cache")
        }
        results.append(module.session().run(given | caches)[0])
    assert np.array_equal(results[0], results[1])


def integers_of(module: Module) -> list[np.ndarray]:
    """The integers of all weights in groups."""
    values = dict.fromkeys(
        found.integers
        for op in module.operations
        if op.opcode == "Linear"
        and (found := grouped_weights_of(module, op.operands[1])) is not None
    )
    arrays = [constant_array(module.by_id[value]) for value in values]
    return [array for array in arrays if array is not None]


@pytest.mark.parametrize("type_", KEPT)
@pytest.mark.heavy("a plan is compiled")
def test_plans_have_the_integers_of_the_file(type_: str) -> None:
    file = model(type_)
    made = build(file, "npm4k", "w4f16", context=16, chunk=1)
    kept = kept_blocks(file, "blk.0.ffn_up.weight")
    assert kept is not None
    read = kept.read()
    shift = 8 if type_ == "Q4_1" else 0
    wanted = read.integers.astype(np.int16) - shift
    found = [np.asarray(array, np.int16) for array in integers_of(made.decode.legal)]
    assert any(array.shape == wanted.shape and np.array_equal(array, wanted) for array in found)
    losses = made.weight_losses
    assert losses.products == 5  # those of 4,096 weights or more
    assert losses.rounded == []
    expected = Decoder.from_gguf(file).runner(16).feed([4])
    assert np.abs(made.runner().feed([4]) - expected).max() < 5e-3 * np.abs(expected).max()


@pytest.mark.heavy("a plan is compiled")
def test_blocks_are_rounded_anew_where_that_is_asked_for() -> None:
    made = build(model("Q8_0"), "npm4k", "w4f16", context=16, chunk=1, keeps_blocks=False)
    assert len(made.weight_losses.rounded) == made.weight_losses.products == 5
    assert 10 < made.weight_losses.rounded[0] < 40
