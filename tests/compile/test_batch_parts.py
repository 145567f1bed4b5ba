"""Attention whose scores exceed L2 is computed some heads after the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.compile.api import compile as compiled
from nacre.compile.legalise import batch_parts
from nacre.compile.legalise.batch_parts import split_batches
from nacre.compile.legalise.legal_module import Legal
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.core.verify import verify
from nacre.nem.api.documents import check
from tests.compile.legalise.checking import legal_of, run
from tests.compile.models import inputs_of, require_any_order
from tests.effort import scaled

NARROW_L2 = """include "npm4k.nem"

device narrow_l2 extends npm4k {
    topology {
        num_engines = 1
        l2_size_bytes = 65536
        device_units {
            sDMA = 1
            WDM = 0
        }
        per_engine {
            NMU = 1
            CSTL = 2
            DMA = 2
            VPU = 1
            SEQ = 1
            l1_size_bytes = 65536
        }
    }
}
"""


def attention(
    heads: int = 6, rows: int = 24, columns: int = 40, size: int = 8, *, groups: int = 1
) -> Module:
    """Scores of old and new rows, a mask for all heads, and what each head takes of both."""
    b = Builder()
    query = b.input("query", "f32", (heads, groups * rows, size))
    old_keys = b.input("old_keys", "f32", (heads, size, columns))
    keys = b.input("keys", "f32", (heads, size, rows))
    old_values = b.input("old_values", "f32", (heads, columns, size))
    values = b.input("values", "f32", (heads, rows, size))
    mask = b.input("mask", "f32", (1, 1, rows, columns + rows))
    width = columns + rows
    scores = b.add("Concat", *(b.add("MatMul", query, k) for k in (old_keys, keys)), axis=-1)
    apart = b.add("Reshape", scores, new_shape=(heads, groups, rows, width))
    shares = b.add("Softmax", b.add("BinOp", apart, mask, op="Add"), axis=-1)
    shares = b.add("Reshape", shares, new_shape=(heads, groups * rows, width))
    old, new = (
        b.add("Slice", shares, starts=(0, 0, first), ends=(heads, groups * rows, end),
              steps=(1, 1, 1))
        for first, end in ((0, columns), (columns, width))
    )  # fmt: skip
    both = b.add("BinOp", b.add("MatMul", old, old_values), b.add("MatMul", new, values), op="Add")
    return b.module(b.add("Transpose", both, permutation=(1, 0, 2)))


def legal_floats(module: Module) -> Legal:
    return legal_of(module, "f32")


def require_equal_bits(before: Legal, after: Legal, seed: int = 0) -> None:
    assert verify(after.module, "nacre-1") == []
    feeds = inputs_of(before.module, seed)
    for one, other in zip(run(before.module, feeds), run(after.module, feeds), strict=True):
        np.testing.assert_array_equal(one, other)


def largest(legal: Legal) -> int:
    return max(op.type.size_bytes for op in legal.module.operations if op.opcode == "MatMul")


def test_scores_of_some_heads_are_made_at_a_time() -> None:
    before = legal_floats(attention(groups=2))
    whole = largest(before)
    after = split_batches(before, whole)  # a tensor takes half of it
    assert largest(after) * 6 == whole
    require_equal_bits(before, after)
    assert "products of 6 batches are computed in 6 parts" in after.notes[-1]
    # All of one head stands before anything of the next.
    made = [op for op in after.module.operations if op.opcode in ("MatMul", "Softmax")]
    assert [op.opcode for op in made] == 6 * ["MatMul", "MatMul", "Softmax", "MatMul", "MatMul"]
    for op in made:
        assert after.origins[op.value_id]


def test_what_fits_stays_as_it_is() -> None:
    before = legal_floats(attention())
    assert split_batches(before, 2 * largest(before)) is before


def _is_split(finish: Callable[[Builder, int], tuple[int, ...]]) -> bool:
    b = Builder()
    a, k = b.input("a", "f32", (4, 32, 8)), b.input("k", "f32", (4, 8, 64))
    before = legal_floats(b.module(*finish(b, b.add("MatMul", a, k))))
    after = split_batches(before, 32 * 64 * 4 * 4)
    require_equal_bits(before, after)
    return after is not before


NEEDED_WHOLE: dict[str, Callable[[Builder, int], tuple[int, ...]]] = {
    "an output": lambda b, x: (x,),
    "a softmax over batches": lambda b, x: (b.add("Softmax", x, axis=0),),
    "a transposition": lambda b, x: (b.add("Transpose", x, permutation=(1, 0, 2)),),
    "batches joined": lambda b, x: (b.add("Reshape", x, new_shape=(128, 64)),),
    "some batches": lambda b, x: (
        b.add("Slice", x, starts=(1, 0, 0), ends=(3, 32, 64), steps=(1, 1, 1)),
    ),
    "a sum over batches": lambda b, x: (b.add("Sum", x, axes=(0,)),),
    "a constant for each batch": lambda b, x: (
        b.add("BinOp", x, b.constant(np.arange(4, dtype=np.float32).reshape(4, 1, 1)), op="Add"),
    ),
}


@pytest.mark.parametrize("what", NEEDED_WHOLE)
def test_what_is_needed_whole_is_made_whole(what: str) -> None:
    assert not _is_split(NEEDED_WHOLE[what])


def test_a_result_that_is_needed_between_parts_is_made_whole() -> None:
    b = Builder()
    a, k = b.input("a", "f32", (4, 32, 8)), b.input("k", "f32", (4, 8, 64))
    v = b.input("v", "f32", (4, 64, 8))
    shares = b.add("Softmax", b.add("MatMul", a, k), axis=-1)
    mean = b.add("Mean", b.add("MatMul", shares, v), axes=(0, 1, 2), keepdims=True)
    second = b.add("MatMul", b.add("BinOp", shares, mean, op="Mul"), v)  # of all batches of before
    before = legal_floats(b.module(b.add("Transpose", second, permutation=(1, 0, 2))))
    assert split_batches(before, 32 * 64 * 4 * 4) is before


@settings(max_examples=scaled(40))
@given(st.data())
def test_random_chains_have_the_same_bits(data: st.DataObject) -> None:
    heads, rows, columns = (data.draw(st.integers(2, 6)) for _ in range(3))
    b = Builder()
    query = b.input("q", "f32", (heads, rows, 3))
    value = b.add("MatMul", query, b.input("k", "f32", (heads, 3, columns)))
    shape = (heads, rows, columns)
    seen = [value]
    for index in range(data.draw(st.integers(1, 6))):
        kind = data.draw(st.sampled_from(["unary", "binary", "softmax", "joined", "halves"]))
        other = data.draw(st.sampled_from(seen))
        if kind == "unary":
            value = b.add("Unary", value, op="Tanh")
        elif kind == "softmax":
            value = b.add("Softmax", value, axis=data.draw(st.sampled_from([-1, 1, 0])))
        elif kind == "binary":
            kinds = [(heads, 1, 1), (1, rows, columns), (columns,), (1, 1, 1), shape]
            given_ = b.constant(np.float32(0.5)) if index % 2 else other
            drawn = data.draw(st.sampled_from([*kinds, None]))
            if drawn is not None:
                given_ = b.constant(np.full(drawn, index + 0.25, np.float32))
            value = b.add("BinOp", value, given_, op=data.draw(st.sampled_from(["Add", "Mul"])))
        elif kind == "joined":
            both = b.add("Concat", value, other, axis=data.draw(st.sampled_from([1, 2])))
            value = b.add("Slice", both, starts=(0, 0, 0), ends=shape, steps=(1, 1, 1))
        else:
            apart = b.add("Reshape", value, new_shape=(heads, 1, rows, columns))
            value = b.add("Reshape", apart, new_shape=shape)
        seen.append(value)
    outputs = [b.add("Transpose", value, permutation=(1, 0, 2))]
    if data.draw(st.booleans()):
        turned = b.add("Transpose", data.draw(st.sampled_from(seen)), permutation=(0, 2, 1))
        outputs.append(b.add("MatMul", turned, query))
    before = legal_floats(b.module(*outputs))
    after = split_batches(before, data.draw(st.sampled_from([8, 64, 256])))
    require_equal_bits(before, after)


def test_plans_of_parts_are_right_and_take_less_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "narrow.nem"
    device.write_text(NARROW_L2)
    module = attention(6, 48, 80, 16)
    feeds = inputs_of(module)
    made = compiled(module, str(device), "f16")
    assert any("computed in 6 parts" in note for note in made.manifest.notes)
    assert [d for d in check(made.program, strict=True) if d.severity != "info"] == []
    assert made.validate(feeds).ok
    require_any_order(made, feeds, 1)
    monkeypatch.setattr(batch_parts, "_LARGE", 1000.0)
    whole = compiled(module, str(device), "f16")
    assert made.time().cycles < 0.6 * whole.time().cycles
