"""The groups of calls: what each overload is called with."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.core.aten.derived import derive_handlers
from tests.core.torch.calls import case

torch = pytest.importorskip("torch")

Op = Any
Tensor = Any

_BINARY = ("bitwise", "div", "eq", "fmod", "ge", "gt", "le", "lt", "mul", "ne", "remainder")
EXPLICIT = {
    "add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "where.self", "maximum.default",
    "minimum.default", "pow.Tensor_Tensor",
}  # fmt: skip

# At infinities these have their limits in Core IR, and NaN in PyTorch.
LIMITS = {"hardswish.default", "silu.default"}


def _is_integer(key: str) -> bool:
    return key.startswith("bitwise")


# Of x: f32, any shape; i: i64 of the same; b: bool.
ONE = [
    *(
        case(key, (lambda op, x, i, b: [op(i), op(b)]) if _is_integer(key) else
             lambda op, x, i, b: op(x))
        for key in sorted(derive_handlers())
        if key.endswith(".default") and key not in EXPLICIT | LIMITS
    ),
    *(case(key, lambda op, x, i, b: op(x.clamp(-50, 50))) for key in sorted(LIMITS)),
    case("ceil.default", lambda op, x, i, b: op(i)),
    case("sqrt.default", lambda op, x, i, b: [op(i.abs()), op(b)]),
    case("isnan.default", lambda op, x, i, b: op(i)),
    case("relu.default", lambda op, x, i, b: op(i)),
    case("isfinite.default", lambda op, x, i, b: [op(x), op(i)]),
    case("logical_not.default", lambda op, x, i, b: [op(x), op(i), op(b)]),
    case("pow.Tensor_Scalar", lambda op, x, i, b: [
        op(x, 2), op(x, 0.5), op(x, -0.5), op(x, -1), op(x, 3), op(x, 1), op(i, 3), op(x, 2.5)]),
    case("pow.Scalar", lambda op, x, i, b: op(2.0, x)),
    case("clamp.default", lambda op, x, i, b: [
        op(x, -0.5, 0.5), op(x, None, 0.2), op(i, -1, 2), op(i, 0)]),
    case("hardtanh.default", lambda op, x, i, b: [op(x), op(x, 0.0, 6.0)]),
    case("_to_copy.default", lambda op, x, i, b: [
        op(i, dtype=torch.float32), op(x, dtype=torch.float64), op(x, dtype=torch.bool),
        op(b, dtype=torch.int32), op(x.clamp(-9, 9), dtype=torch.int64)]),
    case("clone.default", lambda op, x, i, b: op(x)),
    case("detach.default", lambda op, x, i, b: op(x)),
    case("alias.default", lambda op, x, i, b: op(x)),
    case("lift_fresh_copy.default", lambda op, x, i, b: op(x)),
    case("dropout.default", lambda op, x, i, b: [op(x, 0.5, False), op(x, 0.0, True)]),
    case("native_dropout.default", lambda op, x, i, b: op(x, 0.5, False)[0]),
    case("fill.Scalar", lambda op, x, i, b: op(x, 3)),
    case("fill.Tensor", lambda op, x, i, b: op(x, i.sum())),
    case("copy.default", lambda op, x, i, b: op(x, i)),
    case("masked_fill.Scalar", lambda op, x, i, b: [op(x, b, -7.5), op(i, b, 3)]),
    case("masked_fill.Tensor", lambda op, x, i, b: op(x, b, x.sum())),
    case("gelu.default", lambda op, x, i, b: [
        op(x.clamp(-50, 50)), op(x.clamp(-50, 50), approximate="tanh")]),
    case("leaky_relu.default", lambda op, x, i, b: [op(x), op(x, 0.3)]),
    case("elu.default", lambda op, x, i, b: [op(x), op(x, 0.7), op(x, 1.5, 2.0), op(x, 2, 3, 0.5)]),
    case("hardsigmoid.default", lambda op, x, i, b: op(x)),
    case("softplus.default", lambda op, x, i, b: [
        op(x * 9), op(x, 2.0), op(x, 1, 0.1), op(x.double() * 9)]),
    *(case(f"{name}.default", lambda op, x, i, b: op(x)) for name in (
        "zeros_like", "ones_like")),
    case("empty_like.default", lambda op, x, i, b: torch.ops.aten.fill.Scalar(op(x), 2)),
    case("new_zeros.default", lambda op, x, i, b: op(x, [2, 3])),
    case("new_ones.default", lambda op, x, i, b: op(i, [2])),
    case("new_empty.default", lambda op, x, i, b: torch.ops.aten.fill.Scalar(op(x, [2]), 1)),
    case("new_full.default", lambda op, x, i, b: op(x, [2, 2], 1.5)),
    case("full_like.default", lambda op, x, i, b: op(x, 2.5)),
]  # fmt: skip

BITS = {
    "Tensor": lambda op, x, y, i, j: op(i, j.abs() % 7),
    "Scalar": lambda op, x, y, i, j: op(i, 3),
    "Tensor_Scalar": lambda op, x, y, i, j: op(i, 3),
    "Scalar_Tensor": lambda op, x, y, i, j: op(3, j.abs() % 7),
}
# Of x, y: f32 that broadcast; i, j: i64 of these shapes.
TWO = [
    *(
        case(key, BITS[key.partition(".")[2]])
        for key in sorted(derive_handlers())
        if key.startswith("bitwise") and not key.endswith("default")
    ),
    *(case(f"__{name}__.Scalar", lambda op, x, y, i, j: op(i, 3))
      for name in ("lshift", "rshift")),
    *(case(f"__{name}__.Tensor", lambda op, x, y, i, j: op(i, j.abs() % 7))
      for name in ("lshift", "rshift")),
    case("remainder.Scalar_Tensor", lambda op, x, y, i, j: [op(7, j + 20), op(2.5, y)]),
    *(
        case(key, lambda op, x, y, i, j: [op(x, y), op(x, j + 20), op(i, j + 20)])
        for key in sorted(derive_handlers())
        if key.startswith(_BINARY) and key.endswith(".Tensor") and not _is_integer(key)
    ),
    *(
        case(key, lambda op, x, y, i, j: [op(x, 0.5), op(i, 2), op(i, 1.5)])
        for key in sorted(derive_handlers())
        if key.endswith(".Scalar") and not _is_integer(key) and key not in EXPLICIT
    ),
    *(
        case(f"{name}.Tensor", lambda op, x, y, i, j: [
            op(x, y), op(x, y, alpha=2), op(x, j), op(i, j, alpha=3), op(x, 1), op(i, 1.5)])
        for name in ("add", "sub")
    ),
    *(case(f"{name}.Scalar", lambda op, x, y, i, j: [op(x, 2), op(i, 2), op(i, 2.5)])
      for name in ("add", "sub")),
    case("add.Tensor", lambda op, x, y, i, j: op(x > 0, y > 0)),
    case("mul.Tensor", lambda op, x, y, i, j: [op(x > 0, y > 0), op(x, y > 0)]),
    case("maximum.default", lambda op, x, y, i, j: [
        op(x, y), op(i, j), op(x, j), op(x > 0, y > 0)]),
    case("minimum.default", lambda op, x, y, i, j: [op(x, y), op(i, j), op(x, j)]),
    case("fmax.default", lambda op, x, y, i, j: [op(x, y), op(i, j)]),
    case("fmin.default", lambda op, x, y, i, j: [op(x, y), op(i, j)]),
    case("pow.Tensor_Tensor", lambda op, x, y, i, j: [op(x.abs(), y), op(i, j.abs() % 4)]),
    *(
        case(f"logical_{name}.default", lambda op, x, y, i, j: [op(x > 0, y > 0), op(x, j)])
        for name in ("and", "or", "xor")
    ),
    case("where.self", lambda op, x, y, i, j: [op(x > 0, x, y), op(x > y, i, y)]),
    case("clamp.Tensor", lambda op, x, y, i, j: [op(x, y), op(x, None, y), op(i, j, j + 2)]),
    case("div.Tensor_mode", lambda op, x, y, i, j: [
        op(x, y + 20, rounding_mode="floor"), op(x, y, rounding_mode="trunc"),
        op(i, j + 20, rounding_mode="floor"), op(i, j + 20, rounding_mode="trunc"),
        op(i, j + 20, rounding_mode=None)]),
    case("div.Scalar_mode", lambda op, x, y, i, j: [
        op(x, 0.5, rounding_mode="floor"), op(i, -3, rounding_mode="floor"),
        op(i, -3, rounding_mode="trunc")]),
]  # fmt: skip

# Of x: f32 [a, b, c]; i: i64 of the same.
AXES = [
    *(case(f"{name}.default", lambda op, x, i: [op(x), op(i.to(torch.float64))])
      for name in ("mean",)),
    *(case(f"{name}.default", lambda op, x, i: [op(x), op(i)])
      for name in ("sum", "max", "min", "any", "all")),
    case("prod.default", lambda op, x, i: op(x)),
    case("sum.dim_IntList", lambda op, x, i: [
        op(x, [1]), op(x, [0, -1], True), op(i, [2]), op(x, None), op(x > 0, [0])]),
    case("mean.dim", lambda op, x, i: [op(x, [1]), op(x, [0, -1], True), op(x, None, True)]),
    case("amax.default", lambda op, x, i: [op(x, [1]), op(i, [0, -1], True), op(x)]),
    case("amin.default", lambda op, x, i: [op(x, [1]), op(i, [0, -1], True), op(x)]),
    case("prod.dim_int", lambda op, x, i: [op(x, 1), op(x, -1, True), op(i, 0)]),
    case("logsumexp.default", lambda op, x, i: [op(x, [1]), op(x, [0, 2], True)]),
    case("any.dim", lambda op, x, i: [op(x > 1, 1), op(i, -1, True)]),
    case("all.dim", lambda op, x, i: [op(x > -1, 1), op(i, -1, True)]),
    case("any.dims", lambda op, x, i: op(x > 1, [0, 1])),
    case("all.dims", lambda op, x, i: op(x > -1, [0, 1], True)),
    case("max.dim", lambda op, x, i: [*op(x, 1), *op(x, -1, True)]),
    case("min.dim", lambda op, x, i: [*op(x, 1), *op(x, -1, True)]),
    case("argmax.default", lambda op, x, i: [op(x), op(x, 1), op(x, -1, True)]),
    case("argmin.default", lambda op, x, i: [op(x), op(x, 1), op(x, -1, True)]),
    case("cumsum.default", lambda op, x, i: [op(x, 1), op(i, -1)]),
    case("cumprod.default", lambda op, x, i: op(x, 1)),
    case("var.correction", lambda op, x, i: [op(x, correction=0), op(x, [1], correction=0.5)]),
    case("std.correction", lambda op, x, i: op(x, [0, 2], correction=0, keepdim=True)),
    case("var_mean.correction", lambda op, x, i: list(op(x, [2], correction=0, keepdim=True))),
    case("linalg_vector_norm.default", lambda op, x, i: [
        op(x), op(x, 1, [1]), op(x, 3.0, [0], True), op(x, float("inf"), [2]),
        op(x, float("-inf"), [2]), op(x, 0, [1])]),
    case("topk.default", lambda op, x, i: [*op(x, 1), *op(x, 2, 1, False)]),
    case("sort.default", lambda op, x, i: [*op(x), *op(x, 0, True)]),
    case("sort.stable", lambda op, x, i: list(op(i % 2, stable=True, dim=1))),
    case("softmax.int", lambda op, x, i: [op(x, 1), op(i, -1, torch.float32)]),
    case("_softmax.default", lambda op, x, i: op(x, 2, False)),
    case("log_softmax.int", lambda op, x, i: op(x, 0)),
    case("_log_softmax.default", lambda op, x, i: op(x, -1, False)),
]  # fmt: skip

# Of x: f32 [a, b, c] with b and c even.
SHAPES = [
    case("view.default", lambda op, x: [op(x, [-1]), op(x, [x.shape[0], -1])]),
    case("_unsafe_view.default", lambda op, x: op(x, [-1, x.shape[2]])),
    case("unsqueeze.default", lambda op, x: [op(x, 0), op(x, -1)]),
    case("squeeze.default", lambda op, x: op(x[:1])),
    case("squeeze.dim", lambda op, x: [op(x[:, :1], 1), op(x, 1)]),
    case("squeeze.dims", lambda op, x: op(x[:1, :1], [0, 1])),
    case("permute.default", lambda op, x: [op(x, [2, 0, 1]), op(x, [-1, 1, 0])]),
    case("transpose.int", lambda op, x: [op(x, 0, 2), op(x, -1, -2)]),
    case("t.default", lambda op, x: [op(x[0]), op(x[0, 0])]),
    case("expand.default", lambda op, x: op(x[:, :1], [2, x.shape[0], 3, -1])),
    case("repeat.default", lambda op, x: [op(x, [2, 1, 3]), op(x, [2, 1, 1, 1])]),
    case("cat.default", lambda op, x: [op([x, x], 1), op([x, x.to(torch.float64)]),
                                       op([x.new_zeros(0), x], 0)]),
    case("stack.default", lambda op, x: [op([x, x]), op([x, x], -1)]),
    case("split.Tensor", lambda op, x: op(x, 3, 2)),
    case("split_with_sizes.default", lambda op, x: op(x, [1, x.shape[1] - 1], 1)),
    case("unbind.int", lambda op, x: op(x, 1)),
    case("slice.Tensor", lambda op, x: [op(x, 1, 1), op(x, 2, 0, -1), op(x, 2, 0, 99, 2)]),
    case("select.int", lambda op, x: [op(x, 1, 0), op(x, 2, -1)]),
    case("flip.default", lambda op, x: op(x, [0, -1])),
    case("roll.default", lambda op, x: [op(x, [1], [2]), op(x, [-1, 2], [1, 0]), op(x, [3])]),
    case("constant_pad_nd.default", lambda op, x: [op(x, [1, 2]), op(x, [0, -1, 2, 0], 1.5)]),
    case("pad.default", lambda op, x: [
        op(x, [1, 1]), op(x, [1, 1], "reflect"), op(x, [1, 2], "replicate"),
        op(x, [1, 1], "circular"), op(x, [0, 1, 2, 0], "constant", 3.0)]),
    *(case(f"{name}_pad{n}d.default", lambda op, x, n=n: op(
        x[None, :].reshape(1, *[1] * (n - 1), *x.shape)[..., :2, :2, :2].expand(
            *[2] * (n - 1), 1, -1, -1, -1) if n == 3 else x[None] if n == 2 else x,
        [1, 0] * n)) for name in ("reflection", "replication") for n in (1, 2)),
    *(case(f"{name}_pad3d.default", lambda op, x: op(
        x.reshape(1, 1, *x.shape).expand(1, 2, -1, -1, -1), [1, 0, 0, 1, 0, 0]))
      for name in ("reflection", "replication")),
    case("pixel_shuffle.default", lambda op, x: op(x.repeat(4, 1, 1), 2)),
    case("pixel_unshuffle.default", lambda op, x: op(x[None, None], 2)),
    case("tril.default", lambda op, x: [op(x), op(x, -1)]),
    case("triu.default", lambda op, x: [op(x), op(x, 1)]),
    case("glu.default", lambda op, x: [op(x), op(x, 1)]),
    case("prelu.default", lambda op, x: [op(x, x[0, 0, :1]), op(x, x[0, :, 0])]),
    case("_prelu_kernel.default", lambda op, x: op(x, x[:1, :1])),
    case("full.default", lambda op, x: torch.ops.aten.mul.Tensor(op([2, 2], 3.0), x.sum())),
    case("einsum.default", lambda op, x: op("abc, dbc -> ad", [x, x])),
]  # fmt: skip

# Of x: f32 [3, 4, 5]; i: i64 [2, 3] in 0..3; k: i64 [2] in 0..3 without repetition.
PLACES = [
    case("embedding.default", lambda op, x, i, k: op(x[0], i)),
    case("index_select.default", lambda op, x, i, k: [op(x, 1, k), op(x, -1, k)]),
    case("gather.default", lambda op, x, i, k: [op(x, 1, i[:, :, None]), op(x[0], 0, i)]),
    case("index.Tensor", lambda op, x, i, k: [
        op(x, [None, i]), op(x, [None, i, i]), op(x, [k % 3, None, k]), op(x, [k % 3, k, k]),
        op(x, [-1 - i % 3])]),
    case("_unsafe_index.Tensor", lambda op, x, i, k: op(x, [None, i, i])),
    case("one_hot.default", lambda op, x, i, k: op(i, 4)),
    case("slice_scatter.default", lambda op, x, i, k: [
        op(x, x[:, :2] + 1, 1, 1, 3), op(x, x[..., :2], 2, 0, 4, 2), op(x, x * 2, 0),
        op(x, x[:1], 0, 2)]),
    case("select_scatter.default", lambda op, x, i, k: [op(x, x[:, 0], 1, 2), op(x, x[0], 0, -1)]),
    case("index_copy.default", lambda op, x, i, k: [
        op(x, 1, k, x[:, :2] + 1), op(x[0], 0, k, x[1, :2]), op(x, 2, k, x[..., :2])]),
    case("index_put.default", lambda op, x, i, k: [
        op(x, [None, k], x[:, :2] + 1), op(x, [None, k], x[0, 0]), op(x[0], [k], x[1, :2]),
        op(x, [k % 3, None, k], x[:2, :, 0]), op(x, [None, i, i], x[0, 0, 0], True),
        op(x, [i % 3], x[0, 0], True),
        op(x, [None, None, torch.tensor([True, False, True, False, True])], x[..., :3])]),
    case("_unsafe_index_put.default", lambda op, x, i, k: op(x, [None, k], x[:, :2])),
    case("index_add.default", lambda op, x, i, k: [
        op(x, 1, k, x[:, :2]), op(x[0], 0, i[0], x[1, :3], alpha=2)]),
    case("scatter.src", lambda op, x, i, k: op(x, 1, k[None, :, None], x)),
    case("scatter.value", lambda op, x, i, k: op(x, 1, k[None, :, None], 2.5)),
    case("scatter_add.default", lambda op, x, i, k: op(x[0], 0, i, x[1])),
    case("scatter.reduce", lambda op, x, i, k: op(x[0], 0, i, x[1], reduce="multiply")),
    case("scatter.value_reduce", lambda op, x, i, k: op(x[0], 0, i, 2.0, reduce="add")),
    case("scatter_reduce.two", lambda op, x, i, k: [
        op(x[0], 0, i, x[1], "amax"), op(x[0], 0, i, x[1], "sum")]),
]  # fmt: skip
