"""Operations of `nacre-1` that move elements, against NumPy, PyTorch and ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.elements import GRAPH_TYPES
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import TensorType
from nacre.core.op_table.data import DATA
from nacre.core.op_table.quantized import QUANTIZED
from nacre.core.rules.facts import OperationFacts as RuleUse
from nacre.core.specs import OpSpec
from nacre.core.values import Word, attributes
from nacre.core.verify import verdict_of
from nacre.kernels.interface.call import Call
from nacre.kernels.interface.call import TensorType as KernelType
from nacre.kernels.registry import PRIMITIVES
from tests.kernels.oracle_data import (
    EVERY,
    FLOATS,
    INTEGERS,
    Dims,
    Use,
    computed,
    held,
    holds,
    layouts,
    made,
    module_of,
    reason,
    refused,
    same_bits,
    seeds,
    small,
)
from tests.kernels.oracle_views import onnx_result

every_type = st.sampled_from(EVERY)
F, WHOLE, U = ("f32", (2, 3)), ("i64", (2, 3)), ("u4", (2, 3))

VALID: tuple[Use, ...] = (
    ("Broadcast", (F,), {"shape": (4, 2, 3)}),
    ("Concat", (F, F, F), {"axis": -1}),
    ("Pad", (F,), {"pads": (1, 0, 0, 2), "mode": "edge"}),
    ("Pad", (WHOLE,), {"pads": (1, 0, 0, 2), "value": 7.0}),
    ("Flip", (U,), {"axes": (0, -1)}),
    ("Tile", (F,), {"repeats": (2, 1)}),
    ("GatherAxis", (F, ("i32", (5,))), {"axis": 1}),
    ("GatherElements", (F, WHOLE), {"axis": 1}),
    ("GatherNd", (F, ("i64", (4, 1))), {}),
    ("ScatterElements", (F, WHOLE, F), {"axis": 0, "reduction": "max"}),
    ("ScatterNd", (F, ("i64", (4, 1)), ("f32", (4, 3))), {}),
    ("ScatterRows", (F, ("i64", ()), ("f32", (3,))), {}),
    ("TopKValues", (F,), {"k": 2, "axis": -1}),
    ("TopKIndices", (F,), {"k": 2, "axis": -1, "largest": False}),
    ("OneHot", (("i64", (3,)), ("f16", (2,))), {"depth": 4}),
    ("Iota", (), {"shape": (2, 3), "axis": 1, "dtype": "bf16"}),
    ("Resize", (F,), {"sizes": (4, 5), "mode": "linear", "scales": (2.0, 1.75)}),
    ("DepthToSpace", (("f32", (1, 8, 2, 2)),), {"block": 2, "mode": "CRD"}),
    ("SpaceToDepth", (("f32", (1, 2, 4, 6)),), {"block": 2}),
    ("Trilu", (("bool", (3, 3)),), {"upper": False, "k": -1}),
    ("DynamicSlice", (F, ("i32", (2,))), {"sizes": (1, 2)}),
    ("DynamicUpdate", (F, ("f32", (1, 2)), ("i64", (2,))), {}),
)  # fmt: skip


@pytest.mark.parametrize("use", VALID, ids=lambda use: use[0])
def test_verifies_prints_and_is_of_nacre_1(use: Use) -> None:
    holds(use)


REFUSED: tuple[tuple[Use, str, str], ...] = (
    (("Broadcast", (F,), {"shape": (2, 4)}), "NCR02", "[2, 3], which does not stretch to [2, 4]"),
    (("GatherAxis", (F, ("f32", (5,))), {"axis": 1}), "NCR01", "expected `i32` or `i64`"),
    (("Concat", (F, WHOLE), {"axis": 0}), "NCR01", "expected `f32`"),
    (("ScatterNd", (F, ("i64", (1,)), ("f64", (3,))), {}), "NCR01", "expected `f32`"),
    (("TopKValues", (("bool", (3,)),), {"k": 1, "axis": 0}), "NCR01", "expected numbers"),
    (("Pad", (F,), {"pads": (0,) * 4, "mode": "edges"}), "NCR03", "did you mean `edge`"),
    (("Pad", (WHOLE,), {"pads": (0,) * 4, "value": 0.5}), "NCR01", "expected"),
    (("Pad", (("u8", (2,)),), {"pads": (0, 1), "value": 256}), "NCR01", "expected"),
    (("Pad", (("bool", (2,)),), {"pads": (0, 1), "value": 2}), "NCR01", "expected"),
    (("Pad", (WHOLE,), {"pads": (0,) * 4, "value": float("nan")}), "NCR01", "expected"),
    (("Iota", (), {"shape": (2,), "axis": 0, "dtype": "f23"}), "NCR03", "no `dtype` of `Iota`"),
    (("Trilu", (F,), {"k": 0, "uper": True}), "MOD10", "no attribute"),
)


@pytest.mark.parametrize(("use", "code", "told"), REFUSED)
def test_rules_say_what_is_wrong(use: Use, code: str, told: str) -> None:
    refused(use, code, told)


HUGE = 10**30
BLOCK = (1, 8, 2, 3)
MISFITS: tuple[tuple[str, tuple[Dims, ...], dict[str, Any], str], ...] = (
    ("Broadcast", ((2,),), {"shape": (0,)}, "`shape` has 0, expected at least 1"),
    ("Broadcast", ((2, 1),), {"shape": (2,)}, "[2, 1], which does not stretch to [2]"),
    ("Concat", ((), ()), {"axis": 0}, "the tensor is a scalar"),
    ("Concat", ((2, 3), (2, 4)), {"axis": 0}, "input 1 has the shape [2, 4], expected that of"),
    ("Concat", ((2, 3), (2,)), {"axis": -2}, "input 1 has the shape [2]"),
    ("Concat", ((2, 3), (2, 3)), {"axis": HUGE}, f"`axis` is {HUGE}, expected -2 to 1"),
    ("Pad", ((2,),), {"pads": (1,)}, "`pads` has 1 entries, expected 2"),
    ("Pad", ((2,),), {"pads": (-1, -1)}, "`pads` leave nothing of axis 0, which has the size 2"),
    ("Pad", ((2,),), {"pads": (-HUGE, HUGE)}, "leave nothing"),
    ("Pad", ((3,),), {"pads": (3, 0), "mode": "reflect"}, "has 3 for axis 0, expected at most 2"),
    ("Pad", ((3,),), {"pads": (-1, 2), "mode": "reflect"}, "expected at most 1"),
    ("Pad", ((3,),), {"pads": (0, 0), "mode": "odd"}, "`mode` is `odd`, expected one of"),
    ("Flip", ((2, 3),), {"axes": (0, -2)}, "`axes` names an axis twice"),
    ("Flip", ((),), {"axes": (0,)}, "the tensor is a scalar"),
    ("Tile", ((2,),), {"repeats": (1, 1)}, "`repeats` has 2 entries, expected 1"),
    ("Tile", ((2,),), {"repeats": (-1,)}, "`repeats` has -1, expected at least 1"),
    ("Iota", (), {"shape": (), "axis": 0, "dtype": "f32"}, "the tensor is a scalar"),
    ("Iota", (), {"shape": (2, 0), "axis": 0, "dtype": "f32"}, "`shape` has 0"),
    ("Iota", (), {"shape": (2,), "axis": 0, "dtype": "bool"}, "expected a type of numbers"),
    ("Iota", (), {"shape": (2,), "axis": 0, "dtype": "odd"}, "`dtype` is `odd`"),
    ("DepthToSpace", ((1, 8, 2),), {"block": 2}, "expected 4 axes"),
    ("DepthToSpace", (BLOCK,), {"block": 0}, "`block` has 0, expected at least 1"),
    ("DepthToSpace", (BLOCK,), {"block": 3}, "8 channels, expected a multiple of 3^2"),
    ("DepthToSpace", (BLOCK,), {"block": HUGE}, "8 channels, expected a multiple of"),
    ("DepthToSpace", (BLOCK,), {"block": 2, "mode": "RCD"}, "expected `DCR` or `CRD`"),
    ("SpaceToDepth", (BLOCK,), {"block": 2}, "planes of 2 x 3, expected multiples of 2"),
    ("Trilu", ((4,),), {}, "expected at least 2 axes"),
)


@pytest.mark.parametrize(("opcode", "shapes", "given_", "told"), MISFITS)
def test_misfits(opcode: str, shapes: tuple[Dims, ...], given_: dict[str, Any], told: str) -> None:
    found = reason(opcode, shapes, **given_)
    assert found is not None
    assert told in found


whole = st.integers(-3, 9) | st.sampled_from([-HUGE, HUGE, 2**31, 2**63, 10**399])
real = st.floats() | whole
words = st.sampled_from(["NHWC", "linear", "cubic", "Avg", "i8", "u4", "f32", "wrap", "add", "odd"])
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "int": whole,
    "float": real,
    "bool": st.booleans(),
    "word": words.map(Word),
    "dtype": words.map(Word),
    "ints": st.lists(whole, max_size=5).map(tuple),
    "floats": st.lists(real, max_size=4).map(tuple),
}


@given(st.sampled_from([*DATA, *QUANTIZED]), st.data())
def test_whatever_the_attributes_there_is_a_verdict(spec: OpSpec, data: st.DataObject) -> None:
    dims = st.lists(st.integers(1, 6) | st.just(2**40), max_size=5).map(tuple)
    count = data.draw(st.integers(spec.least, spec.most or 3))
    shapes = [data.draw(dims) for _ in range(count)]
    types = [TensorType(data.draw(every_type), shape) for shape in shapes]
    chosen = {a.name: data.draw(KINDS[a.kind]) for a in spec.attributes if a.is_required}
    chosen |= {
        a.name: data.draw(KINDS[a.kind])
        for a in spec.attributes
        if not a.is_required and data.draw(st.booleans())
    }
    given_ = attributes(chosen)
    found = spec.infer(types, given_)
    told = reason(spec.name, shapes, **given_)
    if told is not None:
        assert found is None
    if found is not None:
        assert min(found.shape, default=1) >= 1
        verdict_of(RuleUse(spec.name, spec, tuple(types), given_, found, "nacre-1"))


@given(every_type, small, st.lists(st.integers(1, 3), max_size=2), layouts, seeds)
def test_broadcast(dtype: str, dims: Dims, before: list[int], layout: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    flat = tuple(int(dim) if rng.integers(2) else 1 for dim in dims)
    x = made(dtype, flat, seed)
    shape = (*before, *dims)
    expected = np.empty(shape, held(dtype))
    for place in np.ndindex(shape):
        own = place[len(before) :]
        expected[place] = x[1][tuple(0 if f == 1 else p for f, p in zip(flat, own, strict=True))]
    same_bits(computed("Broadcast", x, shape=shape, memory=layout), expected)


@given(every_type, small, st.integers(1, 4), layouts, seeds, st.data())
def test_concat(
    dtype: str, dims: Dims, count: int, layout: str, seed: int, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(dims), len(dims) - 1))
    parts = []
    for index in range(count):
        own = list(dims)
        own[axis] = index + 1
        parts.append(made(dtype, tuple(own), seed + index))
    expected = np.concatenate([array for _, array in parts], axis)
    same_bits(computed("Concat", *parts, axis=axis, memory=layout), expected)


@given(every_type, small, layouts, seeds, st.data())
def test_flip_tile_and_trilu(
    dtype: str, dims: Dims, layout: str, seed: int, data: st.DataObject
) -> None:
    x = made(dtype, dims, seed)
    axes = data.draw(st.sets(st.integers(0, len(dims) - 1)))
    same_bits(computed("Flip", x, axes=tuple(axes), memory=layout), np.flip(x[1], tuple(axes)))
    repeats = data.draw(st.tuples(*[st.integers(1, 3)] * len(dims)))
    same_bits(computed("Tile", x, repeats=repeats, memory=layout), np.tile(x[1], repeats))
    if len(dims) < 2:
        return
    upper, k = data.draw(st.booleans()), data.draw(st.integers(-6, 6) | st.just(HUGE))
    expected = x[1].copy()
    for place in np.ndindex(dims):
        row, column = place[-2:]
        if (column < row + k) if upper else (column > row + k):
            expected[place] = 0
    same_bits(computed("Trilu", x, upper=upper, k=k, memory=layout), expected)


@given(st.sampled_from(INTEGERS + FLOATS), small, layouts, st.data())
def test_iota(dtype: str, dims: Dims, layout: str, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(dims), len(dims) - 1))
    shape = tuple(300 if at == axis % len(dims) else d for at, d in enumerate(dims))
    found = computed("Iota", shape=shape, axis=axis, dtype=dtype, memory=layout)
    elem = GRAPH_TYPES[dtype]
    for place in range(300):
        value: Any = place
        if elem.is_integer:
            value = (place - int(elem.lowest)) % 2**elem.bits + int(elem.lowest)
        part = np.take(found, place, axis).astype(np.float64)
        with np.errstate(over="ignore"):
            rounded = float(np.float32(value).astype(held(dtype)).astype(np.float64))
        np.testing.assert_array_equal(part, np.full(part.shape, rounded))


@given(every_type, small, layouts, seeds, st.data())
def test_pad(dtype: str, dims: Dims, layout: str, seed: int, data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from(["constant", "reflect", "edge", "wrap"]))
    most = [dim - 1 if mode == "reflect" else 5 for dim in dims]
    widths = [(data.draw(st.integers(0, m)), data.draw(st.integers(0, m))) for m in most]
    pads = (*(b for b, _ in widths), *(e for _, e in widths))
    x = made(dtype, dims, seed)
    found = computed("Pad", x, pads=pads, mode=mode, value=1.0, memory=layout)
    other: dict[str, Any] = {"constant_values": held(dtype).type(1)} if mode == "constant" else {}
    same_bits(found, np.pad(x[1], widths, mode=mode, **other))  # type: ignore[call-overload]


@given(small, seeds, st.data())
def test_pad_cuts_as_onnxruntime(dims: Dims, seed: int, data: st.DataObject) -> None:
    x = made("f32", dims, seed)
    mode = data.draw(st.sampled_from(["constant", "edge"]))
    pads = tuple(data.draw(st.integers(-1, 2)) for _ in range(2 * len(dims)))
    left = [
        d + min(b, 0) + min(e, 0)
        for d, b, e in zip(dims, pads[: len(dims)], pads[len(dims) :], strict=True)
    ]
    if min(left) < 1:
        assert "leave nothing" in str(reason("Pad", [dims], pads=pads, mode=mode))
        return
    (expected,) = onnx_result("Pad", [x[1], np.array(pads, np.int64)], {"mode": mode})
    same_bits(computed("Pad", x, pads=pads, mode=mode), expected)


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("i64", 2**63 - 1, 2**63 - 1),
        ("i64", -(2.0**63), -(2**63)),
        ("u4", 15, 15),
        ("bool", 1, True),
        ("f32", -float("inf"), -np.inf),
        ("f32", 10**400 - 1, np.inf),
        ("f64", 0.1, 0.1),
        ("f16", 1e9, np.inf),
    ],
)
def test_value_of_pad(dtype: str, value: float, expected: float) -> None:
    found = computed("Pad", made(dtype, (1,), 0), pads=(0, 1), value=value)
    assert found[1] == expected


@given(st.sampled_from(["f32", "i8", "bf16"]), st.integers(1, 3), st.integers(1, 3), seeds)
def test_blocks_as_onnx_and_pytorch(dtype: str, block: int, channels: int, seed: int) -> None:
    torch = pytest.importorskip("torch")
    coarse = made(dtype, (2, channels * block**2, 2, 3), seed)
    fine = made(dtype, (2, channels, 2 * block, 3 * block), seed)
    bits = held("i16" if dtype == "bf16" else dtype)
    for opcode, x, shuffle in (
        ("DepthToSpace", coarse, torch.pixel_shuffle),
        ("SpaceToDepth", fine, torch.pixel_unshuffle),
    ):
        expected = shuffle(torch.from_numpy(x[1].view(bits)), block).numpy().view(held(dtype))
        same_bits(computed(opcode, x, block=block, mode="CRD"), expected)
    if dtype == "f32":
        for opcode, x in (("DepthToSpace", coarse), ("SpaceToDepth", fine)):
            (expected,) = onnx_result(opcode, [x[1]], {"blocksize": block})
            same_bits(computed(opcode, x, block=block), expected)
    for mode in ("DCR", "CRD"):
        there = computed("SpaceToDepth", fine, block=block, mode=mode, memory="strided")
        back = computed("DepthToSpace", (dtype, there), block=block, mode=mode, memory="strided")
        same_bits(back, fine[1])


@pytest.mark.parametrize(
    ("opcode", "given_"),
    [
        ("Broadcast", {"shape": ()}),
        ("Flip", {"axes": ()}),
        ("Tile", {"repeats": ()}),
        ("Pad", {"pads": (), "mode": "constant"}),
        ("Pad", {"pads": (), "mode": "wrap"}),
        ("Pad", {"pads": (), "mode": "edge"}),
        ("Resize", {"sizes": (), "mode": "linear"}),
        ("Resize", {"sizes": ()}),
    ],
)
@pytest.mark.parametrize("dtype", EVERY)
def test_scalars_stay(opcode: str, given_: dict[str, Any], dtype: str) -> None:
    if (opcode, dtype) != ("Resize", "bool"):
        x = made(dtype, (), 3)
        same_bits(computed(opcode, x, **given_), x[1])


def test_what_does_not_fit_into_the_machine_is_refused_before_it_is_made() -> None:
    uses: tuple[Use, ...] = (
        ("Iota", (), {"shape": (1 << 50,), "axis": 0, "dtype": "f32"}),
        ("Pad", (("f32", (1,)),), {"pads": (0, 1 << 50), "mode": "wrap"}),
        ("Resize", (("f32", (2,)),), {"sizes": (1 << 50,), "mode": "cubic"}),
        ("Trilu", (("f32", (1 << 25, 1 << 25)),), {}),
    )
    for use in uses:
        module = module_of(use)
        with pytest.raises(Exception, match="EVL05"):
            evaluate(module, {})


def test_a_bad_value_is_refused_by_the_kernel_too() -> None:
    type_ = KernelType(GRAPH_TYPES["i8"], (2,))
    call = Call((type_,), (type_,), {"pads": (0, 0), "mode": "constant", "value": 0.5})
    run = PRIMITIVES["core.Pad"].bind(call)
    with pytest.raises(ValueError, match=r"`value` is 0\.5, expected an integer of `i8`"):
        run([np.zeros(2, np.int8)], [np.zeros(2, np.int8)])
