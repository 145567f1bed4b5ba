"""Functions of one element that graphs have, against torch in f64 and Python's loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.ops import OPS
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.verify import verify
from nacre.kernels.interface.call import Call, Work
from nacre.kernels.numbers import real_functions
from nacre.kernels.numbers.graph_functions import REALS, ULPS, real_function
from nacre.kernels.registry import PRIMITIVES
from tests.kernels.oracle_elements import (
    FLOATS,
    INTEGERS,
    Array,
    Dims,
    assert_close,
    assert_equal,
    attempt,
    doubles,
    dtype_of,
    numbers,
    reals,
    rounded,
    run,
    shapes,
    typed,
    whole_numbers,
    wrapped,
)
from tests.kernels.oracle_views import LAYOUTS, onnx_result, seeds

layouts = st.sampled_from(LAYOUTS)
WIDE = ["f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2"]
OF_ITS_OWN = (
    *("ReluNan", "LeakyRelu", "Elu", "Selu", "HardSigmoid", "HardSwish", "Gelu", "Silu", "Clip"),
)


def torch_functions() -> Mapping[str, Callable[..., Any]]:
    """Each function as torch has it: of a tensor of f64, and of the attributes."""
    torch = pytest.importorskip("torch")
    f = torch.nn.functional
    plain = {
        name: getattr(torch, name.lower())
        for name in OPS["Unary"].by_op
        if name not in ("Not", "IsNan", "IsInf", "Softplus", "Softsign", "Sign")
    }
    return {
        **plain,
        "Sign": lambda x: torch.where(torch.isnan(x), x, torch.sign(x)),
        # Beyond a threshold torch takes x for its softplus.
        "Softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
        "Softsign": lambda x: torch.where(torch.isinf(x), torch.sign(x), f.softsign(x)),
        "ReluNan": torch.relu,
        "LeakyRelu": lambda x, alpha: f.leaky_relu(x, alpha),
        "Elu": lambda x, alpha: f.elu(x, alpha),
        "Selu": lambda x, alpha, gamma: gamma * f.elu(x, alpha),
        "HardSigmoid": lambda x, alpha, beta: torch.clamp(alpha * x + beta, 0, 1),
        "HardSwish": lambda x: torch.where(x < -3, 0.0, f.hardswish(x)),
        "Gelu": _gelu,
        "Silu": lambda x: torch.where(x == -math.inf, 0.0, f.silu(x)),
        "Clip": lambda x, min, max: torch.clamp(x, min, max),
    }


def _gelu(x: Any, approximate: str) -> Any:  # noqa: ANN401 - tensors of torch
    """By functions that keep their digits in the tail, where torch's own form cancels."""
    torch = pytest.importorskip("torch")
    limited = torch.clamp(x, min=-100.0)
    if approximate == "none":
        return limited * torch.special.erfc(limited * -math.sqrt(0.5)) / 2
    inner = math.sqrt(2 / math.pi) * (limited + 0.044715 * limited**3)
    return limited * torch.sigmoid(2 * inner)


def allowed(name: str, x: Array, elem: str) -> float | Array:
    """Ulps; those of f64 are of both sides, and tails are exponentials of large numbers."""
    if elem == "f64":
        size = np.minimum(np.nan_to_num(np.abs(x)), 100.0)
        return 12.0 + 4 * size**3 if name == "Gelu" else 12.0
    return ULPS.get(name, 0.5) + 0.01 if elem == "f32" else 0.51


def exact(name: str, x: Array, attributes: Mapping[str, Any]) -> Array:
    torch = pytest.importorskip("torch")
    given = {**_defaults(name), **attributes}
    result: Array = torch_functions()[name](torch.from_numpy(doubles(x)), **given).numpy()
    return result


def _defaults(name: str) -> dict[str, Any]:
    if name not in OPS:
        return {}
    return {a.name: a.default for a in OPS[name].attributes if a.default is not None}


def single(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers as f32 has them, which is what narrow types are computed with."""
    return {k: float(np.float32(v)) if type(v) is float else v for k, v in attributes.items()}


CASES: list[tuple[str, str, dict[str, Any]]] = [
    *(
        (name, "Unary", {"op": name})
        for name in OPS["Unary"].by_op
        if name not in ("Not", "IsNan", "IsInf")
    ),
    ("ReluNan", "ReluNan", {}),
    *(("LeakyRelu", "LeakyRelu", {"alpha": a}) for a in (0.25, -0.5, 2.0, 0.0)),
    *(("Elu", "Elu", {"alpha": a}) for a in (1.0, 0.5, -2.0)),
    ("Selu", "Selu", {}),
    ("HardSigmoid", "HardSigmoid", {}),
    ("HardSigmoid", "HardSigmoid", {"alpha": 0.25, "beta": 0.125}),
    ("HardSwish", "HardSwish", {}),
    *(("Gelu", "Gelu", {"approximate": a}) for a in ("none", "tanh")),
    ("Silu", "Silu", {}),
    *(
        ("Clip", "Clip", {"min": a, "max": b})
        for a, b in ((0.0, 6.0), (-1.5, math.inf), (-math.inf, 0.25), (2.0, 1.0), (0.0, 0.0))
    ),
]
NAMES = [f"{name}-{index}" for index, (name, _, _) in enumerate(CASES)]


@pytest.mark.parametrize(("name", "op", "attributes"), CASES, ids=NAMES)
@given(st.sampled_from(WIDE), shapes, seeds, layouts, st.booleans())
def test_functions(
    name: str,
    op: str,
    attributes: dict[str, Any],
    elem: str,
    shape: Dims,
    seed: int,
    layout: str,
    ordered: bool,
) -> None:
    x = reals(elem, shape, seed, scale=2.0)

    found = run(op, elem, [x], attributes, layout=layout, ordered=ordered)

    given = {k: v for k, v in {**_defaults(op), **attributes}.items() if k != "op"}
    wanted = exact(name, x, given if elem == "f64" else single(given))
    if elem.startswith("f8"):  # f32 in between: a tie may go the other way
        assert_near(found, wanted, elem)
        return
    # HardSigmoid may cancel to something small; two roundings of numbers around 1 stay.
    least = {"f64": 2.0**-51}.get(elem, 2.0**-22) if name == "HardSigmoid" else 0.0
    assert_close(found, wanted, elem, allowed(name, x, elem), least)


def assert_near(found: Array, wanted: Array, elem: str) -> None:
    """What rounds to the same as the exact result, or as its neighbours in f32."""
    near = [
        rounded((wanted * (1 + step * 2.0**-20)).astype(np.float32), elem) for step in (-1, 0, 1)
    ]
    assert found.dtype == near[0].dtype
    is_one = np.zeros(found.shape, np.bool_)
    for one in near:
        same = (doubles(one) == doubles(found)) | (
            np.isnan(doubles(one)) & np.isnan(doubles(found))
        )
        is_one |= same
    assert is_one.all()


@pytest.mark.parametrize("name", sorted(REALS))
@pytest.mark.parametrize("is_wide", [False, True])
def test_functions_of_all_magnitudes(name: str, is_wide: bool) -> None:
    rng = np.random.default_rng(3)
    elem = "f64" if is_wide else "f32"
    reach = 300 if is_wide else 38
    signs = rng.choice([-1.0, 1.0], 4000)
    x = np.concatenate(
        [signs * 10.0 ** rng.uniform(-reach, reach, 4000), rng.uniform(-40, 40, 4000)]
    ).astype(dtype_of(elem))
    if name == "Silu" and not is_wide:
        x = x[x > -87]
    op = "Unary" if name in OPS["Unary"].by_op else name

    found = run(op, elem, [x], {"op": name} if op == "Unary" else {})
    ordered = run(op, elem, [x], {"op": name} if op == "Unary" else {}, ordered=True)

    given = _defaults(op)
    wanted = exact(name, x, given if is_wide else single(given))
    least = {True: 2.0**-51, False: 2.0**-22}[is_wide] if name == "HardSigmoid" else 0.0
    # What is below the normal numbers has fewer digits than an ulp there says.
    least += {True: 1e-305, False: 1e-37}[is_wide] if name in ("Silu", "Gelu") else 0.0
    assert_close(found, wanted, elem, allowed(name, x, elem), least)
    is_tight = REALS[name].is_transcendental and not is_wide
    assert_close(ordered, wanted, elem, 0.51 if is_tight else allowed(name, x, elem), least)


def test_narrow_functions_have_every_value() -> None:
    pytest.importorskip("torch")
    for elem in ("f16", "bf16"):
        x = np.arange(1 << 16, dtype=np.uint16).view(dtype_of(elem))
        x = x[doubles(x) > -80.0]  # below, sigmoid is subnormal
        for name in ("Tanh", "Sigmoid", "Erf", "Rsqrt"):
            found = run("Unary", elem, [x], {"op": name})
            assert_close(found, exact(name, x, {}), elem, 0.51)


@pytest.mark.parametrize("op", ["Abs", "Sign", "Not"])
@given(st.sampled_from(INTEGERS), shapes, seeds, layouts)
def test_functions_of_integers(op: str, elem: str, shape: Dims, seed: int, layout: str) -> None:
    x = whole_numbers(elem, shape, seed)

    found = run("Unary", elem, [x], {"op": op}, layout=layout)

    functions: dict[str, Callable[[int], int]] = {
        "Abs": abs, "Sign": lambda v: (v > 0) - (v < 0), "Not": lambda v: -1 - v,
    }  # fmt: skip
    assert found.dtype == dtype_of(elem)
    assert found.ravel().tolist() == [wrapped(functions[op](v), elem) for v in x.ravel().tolist()]


@given(shapes, seeds)
def test_not_of_bool(shape: Dims, seed: int) -> None:
    x = numbers("bool", shape, seed)
    assert_equal(
        run("Unary", "bool", [x], {"op": "Not"}),
        np.array([not v for v in x.ravel()], np.bool_).reshape(shape),
    )


@given(st.sampled_from(FLOATS), shapes, seeds, layouts)
def test_tests(elem: str, shape: Dims, seed: int, layout: str) -> None:
    x = reals(elem, shape, seed)
    tests = {"IsNan": math.isnan, "IsInf": math.isinf}
    for op, test in tests.items():
        found = run("Unary", elem, [x], {"op": op}, result="bool", layout=layout)
        expected = [test(v) for v in doubles(x).ravel().tolist()]
        assert found.ravel().tolist() == expected


RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "Eq": lambda a, b: a == b,
    "Ne": lambda a, b: a != b,
    "Lt": lambda a, b: a < b,
    "Le": lambda a, b: a <= b,
    "Gt": lambda a, b: a > b,
    "Ge": lambda a, b: a >= b,
}


def plain(values: Array) -> list[Any]:
    flat: list[Any] = (values if values.dtype.kind in "iub" else doubles(values)).ravel().tolist()
    return flat


@pytest.mark.parametrize("op", RELATIONS)
@given(st.sampled_from(sorted(GRAPH_TYPES)), shapes, seeds, layouts)
def test_relations(op: str, elem: str, shape: Dims, seed: int, layout: str) -> None:
    a, b = numbers(elem, shape, seed), numbers(elem, shape[1:], seed + 1)

    found = run("Compare", elem, [a, b], {"op": op}, result="bool", layout=layout)

    pairs = zip(*map(plain, np.broadcast_arrays(a, b)), strict=True)
    assert found.dtype == np.bool_
    assert found.ravel().tolist() == [RELATIONS[op](x, y) for x, y in pairs]


@given(st.sampled_from(sorted(GRAPH_TYPES)), shapes, seeds, layouts)
def test_choices(elem: str, shape: Dims, seed: int, layout: str) -> None:
    condition = numbers("bool", shape[-1:], seed)
    a, b = numbers(elem, shape, seed + 1), numbers(elem, shape[1:], seed + 2)

    found, fault = attempt("Where", ["bool", elem, elem], [condition, a, b], elem, layout=layout)

    assert fault is None
    expected = np.empty(shape, a.dtype)
    for place in np.ndindex(shape):
        c, x, y = (np.broadcast_to(side, shape) for side in (condition, a, b))
        expected[place] = x[place] if c[place] else y[place]
    assert found.tobytes() == expected.tobytes()  # NaN and zeros too, bit for bit


@given(st.sampled_from(INTEGERS), shapes, seeds, st.data())
def test_clip_of_integers(elem: str, shape: Dims, seed: int, data: st.DataObject) -> None:
    x = whole_numbers(elem, shape, seed)
    bound = st.sampled_from([-math.inf, math.inf, 1e300, -1e300, 10**350, -(10**350)])
    bounds = bound | st.integers(-300, 300) | st.floats(-9, 9)
    low, high = data.draw(bounds), data.draw(bounds)

    found = run("Clip", elem, [x], {"min": low, "max": high})

    assert found.dtype == dtype_of(elem)
    least, most = int(GRAPH_TYPES[elem].lowest), int(GRAPH_TYPES[elem].highest)
    whole = range(least, most + 1) if most < 2**9 else None
    for before, after in zip(x.ravel().tolist(), found.ravel().tolist(), strict=True):
        inside = low <= before <= high
        if inside:
            assert after == before
        elif whole is not None and any(low <= v <= high for v in whole):
            nearest = min((v for v in whole if low <= v <= high), key=lambda v: abs(v - before))
            assert after == nearest
        else:
            assert least <= after <= most


@given(st.sampled_from(INTEGERS), shapes, seeds)
def test_relu_of_integers(elem: str, shape: Dims, seed: int) -> None:
    x = whole_numbers(elem, shape, seed)
    assert run("ReluNan", elem, [x]).ravel().tolist() == [max(v, 0) for v in x.ravel().tolist()]


@given(st.sampled_from(WIDE), shapes, seeds, layouts, st.booleans())
def test_slopes_that_broadcast(
    elem: str, shape: Dims, seed: int, layout: str, ordered: bool
) -> None:
    x, slope = reals(elem, shape, seed), reals(elem, shape[1:], seed + 1)

    found = run("PRelu", elem, [x, slope], layout=layout, ordered=ordered)

    wide = np.float64 if elem == "f64" else np.float32
    with np.errstate(all="ignore"):
        product = np.asarray(x.astype(wide) * slope.astype(wide))
        expected = np.array(
            [a if a > 0 else b for a, b in zip(plain(x), plain(product), strict=True)], wide
        )
    assert_equal(found, rounded(expected.reshape(shape), elem))


@pytest.mark.parametrize(
    ("ours", "op", "attributes", "theirs"),
    [
        ("HardSwish", "HardSwish", {}, {}),
        ("HardSigmoid", "HardSigmoid", {"alpha": 0.3, "beta": 0.4}, {"alpha": 0.3, "beta": 0.4}),
        ("Selu", "Selu", {}, {}),
        ("Elu", "Elu", {"alpha": 0.7}, {"alpha": 0.7}),
        ("Gelu", "Gelu", {"approximate": "tanh"}, {"approximate": "tanh"}),
        ("Gelu", "Gelu", {}, {}),
        ("LeakyRelu", "LeakyRelu", {"alpha": 0.2}, {"alpha": 0.2}),
        ("Unary", "Softplus", {"op": "Softplus"}, {}),
        ("Unary", "Round", {"op": "Round"}, {}),
        ("Unary", "Erf", {"op": "Erf"}, {}),
    ],
)
def test_functions_are_those_of_onnxruntime(
    ours: str, op: str, attributes: dict[str, Any], theirs: dict[str, Any]
) -> None:
    x = reals("f32", (3, 5, 7), 11, odd=False)

    (expected,) = onnx_result(op, [x], theirs, opset=20)

    np.testing.assert_allclose(run(ours, "f32", [x], attributes), expected, 1e-5, 1e-6)


def test_values_that_cancel_or_overflow() -> None:
    one = np.array([-1000.0, -745.0, -300.0, -40.0, 700.0, 1e300])
    silu = run("Silu", "f64", [one])
    assert silu[2] == pytest.approx(-300 * math.exp(-300), rel=1e-14)
    assert silu[0] == 0
    assert silu[5] == 1e300
    gelu = run("Gelu", "f64", [np.array([-30.0, -10.0, -1e-300])])
    assert gelu[0] == pytest.approx(-15 * math.erfc(30 / math.sqrt(2)), rel=1e-12)
    assert gelu[1] == pytest.approx(-5 * math.erfc(10 / math.sqrt(2)), rel=1e-13)
    assert gelu[2] == -5e-301


def test_scalars_of_every_function() -> None:
    for name, op, attributes in CASES:
        for elem in WIDE:
            x = rounded(np.array(0.5), elem)
            one = run(op, elem, [x.reshape(1)], attributes, ordered=True)
            assert run(op, elem, [x], attributes, ordered=True).tobytes() == one.tobytes(), name


def test_blocks_join() -> None:
    x = np.linspace(-9, 9, 40_001, dtype=np.float32)
    for op in ("Gelu", "Silu", "Elu"):
        whole = run(op, "f32", [x])
        part = run(op, "f32", [x[20_000:20_032]])
        np.testing.assert_array_max_ulp(whole[20_000:20_032], part, 8)


def test_ordered_zeros_and_nan() -> None:
    x = np.array([-0.0, 0.0, -np.nan, np.nan], np.float32)
    relu = run("ReluNan", "f32", [x], ordered=True)
    assert relu.view(np.uint32).tolist() == [0, 0, 0x7FC00000, 0x7FC00000]
    clip = run("Clip", "f32", [x], {"min": 0.0, "max": 1.0}, ordered=True)
    assert clip.view(np.uint32).tolist() == [1 << 31, 0, 0x7FC00000, 0x7FC00000]


MISFITS: list[tuple[str, list[Dims], dict[str, Any], str]] = [
    ("Compare", [(2, 3), (4,)], {"op": "Lt"}, "shapes [2, 3] and [4] do not broadcast"),
    ("Compare", [(2,), (2,)], {"op": "Less"}, "`op` is `Less`, expected one of `Eq`, `Ne`"),
    ("Where", [(2,), (2,), (3,)], {}, "shapes [2] and [2] and [3] do not broadcast"),
    ("Unary", [(2,)], {"op": "Exp"}, "`op` is `Exp`, expected one of"),
    ("Gelu", [(2,)], {"approximate": "erf"}, "`approximate` is `erf`, expected one of `none`"),
    ("Clip", [(2,)], {"min": math.nan, "max": 1.0}, "`min` is nan, expected a number"),
    ("Clip", [(2,)], {"min": 0.0, "max": math.nan}, "`max` is nan, expected a number"),
    ("PRelu", [(2, 3), (2,)], {}, "`slope` has the shape [2], expected one that stretches"),
    ("PRelu", [(3,), (2, 3)], {}, "`slope` has the shape [2, 3]"),
    ("PRelu", [(), (1,)], {}, "`slope` has the shape [1]"),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "message"), MISFITS)
def test_misfits(op: str, inputs: list[Dims], attributes: dict[str, Any], message: str) -> None:
    shape = PRIMITIVES[f"core.{op}"].shape
    assert shape(inputs, attributes) is None
    assert message in shape.reason(inputs, attributes)  # type: ignore[attr-defined]


def use(builder: Builder, op: str, elem: str, shape: Dims, attributes: Mapping[str, Any]) -> int:
    """An operation with inputs of one type, but for a condition."""
    names = OPS[op].operands[: OPS[op].least]
    types = ["bool" if name == "condition" else elem for name in names]
    inputs = [builder.input(name, t, shape) for name, t in zip(names, types, strict=True)]
    return builder.add(op, *inputs, **attributes)


GOOD: list[tuple[str, str, dict[str, Any]]] = [
    *((op, "f32", attributes) for _, op, attributes in CASES),
    *(("Unary", "f32", {"op": op}) for op in ("IsNan", "IsInf")),
    ("Unary", "i32", {"op": "Not"}),
    *(("Compare", "i64", {"op": op}) for op in RELATIONS),
    ("Where", "f32", {}),
    ("PRelu", "f64", {}),
    ("Cast", "f32", {"to": "i64", "saturate": True}),
]


@pytest.mark.parametrize(("op", "elem", "attributes"), GOOD)
def test_modules(op: str, elem: str, attributes: dict[str, Any]) -> None:
    builder = Builder()
    module = builder.module(use(builder, op, elem, (2, 3), attributes))

    assert not verify(module, "nacre-1")
    assert "MOD10" in {found.code for found in verify(module, "core-v1")}
    assert parse(print_module(module)).operations == module.operations


@pytest.mark.parametrize(
    ("op", "elem", "attributes", "code"),
    [
        ("Unary", "i32", {"op": "Sqrt"}, "NCR01"),
        ("Unary", "f32", {"op": "Not"}, "NCR01"),
        ("Unary", "bool", {"op": "Abs"}, "NCR01"),
        ("Unary", "f32", {"op": "Sqr"}, "NCR03"),
        ("Compare", "f32", {"op": "Less"}, "NCR03"),
        ("Gelu", "i8", {}, "NCR01"),
        ("Gelu", "f32", {"approximate": "fast"}, "NCR03"),
        ("Clip", "bool", {}, "NCR01"),
        ("Clip", "f32", {"min": math.nan}, "NCR02"),
        ("ReluNan", "bool", {}, "NCR01"),
        ("PRelu", "i32", {}, "NCR01"),
        ("Cast", "f32", {"to": "f33"}, "NCR03"),
        ("LeakyRelu", "f32", {"beta": 1.0}, "MOD10"),
    ],
)
def test_refused_modules(op: str, elem: str, attributes: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as error:
        use(Builder(), op, elem, (2, 3), attributes)
    assert code in {found.code for found in error.value.diagnostics}


@pytest.mark.parametrize(
    ("op", "attributes", "each"),
    [("ReluNan", {}, 1), ("Gelu", {}, 8), ("Unary", {"op": "Abs"}, 1), ("Unary", {"op": "Sin"}, 8)],
)
def test_work(op: str, attributes: dict[str, Any], each: int) -> None:
    call = Call((typed("f32", (2, 3)),), (typed("f32", (2, 3)),), attributes)
    assert PRIMITIVES[f"core.{op}"].work(call) == Work(elements=6, each=each)


@pytest.mark.parametrize(
    ("name", "approximate"),
    [("Sigmoid", ""), ("Tanh", ""), ("Silu", ""), ("Gelu", "none"), ("Gelu", "tanh")],
)
def test_ordered_functions_of_graphs_and_of_plans_have_the_same_bits(
    name: str, approximate: str
) -> None:
    x = np.random.default_rng(17).normal(0, 3, 400_000).astype(np.float32)
    attributes = {"approximate": approximate}
    of_graph = real_function(name, attributes, x.dtype, True)
    of_plan = real_functions.real_function(name.lower(), attributes, True)

    with np.errstate(all="ignore"):
        found, expected = of_graph(x, np.empty_like(x)), of_plan(x, out=np.empty_like(x))

    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_keeps_the_sign_of_zero(approximate: str) -> None:
    zeros = np.array([0.0, -0.0], np.float32)
    for elem in ("f32", "f64"):
        found = run("Gelu", elem, [zeros], {"approximate": approximate})
        np.testing.assert_array_equal(np.signbit(found), [False, True])
