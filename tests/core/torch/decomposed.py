"""One use of each ATen overload that we write by others."""

from __future__ import annotations

import pytest

from tests.core.torch.calls import case

torch = pytest.importorskip("torch")

NAN, INF = float("nan"), float("inf")
PAIRS = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, INF, -INF, NAN])

# Of x, y: f32 [a, b, c]; u: f32 [a, b, c] between 0 and 1; i: i64 [a, b, c].
ELEMENTS = [
    case("signbit.default", lambda op, x, y, u, i: [op(x), op(i), op(PAIRS[:-1] + x.sum() * 0)]),
    case("copysign.Tensor", lambda op, x, y, u, i: [op(x, y), op(i, y)]),
    case("copysign.Scalar", lambda op, x, y, u, i: [op(x, -2.0), op(x, 1), op(x, -0.0)]),
    case("atan2.default", lambda op, x, y, u, i: [
        op(x, y), op(i, i.flip(0)), op(PAIRS[:, None] + x.sum() * 0, PAIRS[None])]),
    case("angle.default", lambda op, x, y, u, i: [
        op(x), op(x.double()), op(i), op(i > 0), op(PAIRS + x.sum() * 0)]),
    case("hypot.default", lambda op, x, y, u, i: [
        op(x, y), op(x * 1e30, y * 1e30), op(PAIRS[:, None] + x.sum() * 0, PAIRS[None])]),
    case("round.decimals", lambda op, x, y, u, i: [
        op(x, decimals=2), op(x * 100, decimals=-1)]),
    case("logcumsumexp.default", lambda op, x, y, u, i: [op(x, 1), op(x * 30, -1), op(x, 0)]),
    case("rrelu_with_noise_functional.default", lambda op, x, y, u, i: op(
        x, torch.zeros_like(x), 0.1, 0.3, False)[0]),
    case("fake_quantize_per_tensor_affine_cachemask.default", lambda op, x, y, u, i: list(
        op(x, 0.02, 3, -128, 127))),
    case("fake_quantize_per_channel_affine_cachemask.default", lambda op, x, y, u, i: list(
        op(x[..., :2], u[0, 0, :2] + 0.01, torch.tensor([0, 7], dtype=torch.int32), 2, -16, 15))),
    case("addbmm.default", lambda op, x, y, u, i: [
        op(x[0, :1, :1], x, y.mT, beta=0.5, alpha=2), op(x[0, :1, :1], x, y.mT, beta=0)]),
    case("_trilinear.default", lambda op, x, y, u, i: op(
        x[0], y[0][:, None], u[0], [1], [], [1], [2])),
    case("conv_tbc.default", lambda op, x, y, u, i: op(x, y[:, :1].mT, y[0, 0, :1], 2)),
    case("erfc.default", lambda op, x, y, u, i: [op(x * 3), op(x.double() * 3), op(i), op(PAIRS)]),
    case("special_erfcx.default", lambda op, x, y, u, i: [op(x), op(x.abs() * 40)]),
    case("special_log_ndtr.default", lambda op, x, y, u, i: op(x * 9)),
    case("erfinv.default", lambda op, x, y, u, i: [
        op(u * 1.9 - 0.95), op((u * 2 - 1).double()), op(PAIRS + x.sum() * 0)]),
    case("special_ndtri.default", lambda op, x, y, u, i: [op(u), op(u.double() * 1e-3)]),
    case("ldexp.Tensor", lambda op, x, y, u, i: op(x, i)),
    case("_cdist_forward.default", lambda op, x, y, u, i: [
        op(x, y, p, None) for p in (2.0, 1.0, 3.0, INF, 0.0)]),
    case("_pdist_forward.default", lambda op, x, y, u, i: [op(x[0], 2.0), op(x[0], 1.0)]),
    case("dist.default", lambda op, x, y, u, i: [op(x, y), op(x, y, 1.0)]),
]  # fmt: skip

# Interpolation, padding and whether corners are aligned.
SOME = ((0, 0, False), (1, 2, True), (2, 1, False))
ALL = [(mode, padding, is_aligned) for mode in range(3) for padding in range(3)
       for is_aligned in (False, True)]  # fmt: skip
# Of x: f32 [1, 1, 3, 4, 6]; at: f32 [1, 2, 2, 2, 3].
GRIDS = [
    case("grid_sampler_2d.default", lambda op, x, at: [
        op(x[0], at[0, :1, ..., :2], *how) for how in ALL]),
    case("grid_sampler_3d.default", lambda op, x, at: [
        op(x, at, *how) for how in ALL if how[0] < 2]),
]  # fmt: skip
# Of x: f32 [3, 4, 6]; i: i64 [3, 4, 6], each in 0..2; b: bool [3, 4, 6].
PARTS = [
    *(case(f"diagonal{suffix}.default", lambda op, x, i, b: [
        op(x), op(x, 1, 1, 2), op(x, -2, 0, 2), op(x, 0, -1, 1)]) for suffix in ("", "_copy")),
    case("diagonal_scatter.default", lambda op, x, i, b: [
        op(x[0], x[1, :, 0]), op(x, x[:3, :, 0].mT * 2, 0, 0, 2)]),
    *(case(f"unfold{suffix}.default", lambda op, x, i, b: [
        op(x, 1, 2, 2), op(x, -1, 3, 1), op(x, 0, 3, 5)]) for suffix in ("", "_copy")),
    *(case("scatter_reduce.two", lambda op, x, i, b, how=how: [
        op(x, 1, i, x * 2, how), op(x, 1, i, x * 2, how, include_self=False),
        op(x.long(), 1, i, i, how)]) for how in ("sum", "prod", "mean", "amax", "amin")),
    *(case("index_reduce.default", lambda op, x, i, b, how=how: [
        op(x, 1, i[0, 0], x.repeat(1, 2, 1)[:, :6], how),
        op(x, 1, i[0, 0], x.repeat(1, 2, 1)[:, :6], how, include_self=False)])
      for how in ("prod", "mean", "amax", "amin")),
    case("put.default", lambda op, x, i, b: [
        op(x, torch.tensor([3, 71, -9]), x[0, 0, :3]), op(x, i[0], x[1], True)]),
    case("masked_scatter.default", lambda op, x, i, b: [op(x, b, x.flip(0)), op(x, b[0], x * 2)]),
    case("as_strided.default", lambda op, x, i, b: [
        op(x, [2, 3], [7, 2], 5), op(x, [3], [1], 4), op(x.clone().mT, [2, 5], [1, 3], 1)]),
    case("as_strided_scatter.default", lambda op, x, i, b: op(x, x[0, :2, :3], [2, 3], [9, 2], 1)),
    case("repeat_interleave.Tensor", lambda op, x, i, b: op(
        torch.cat([i[0, 0], 12 - i[0, 0].sum()[None]]), output_size=12)),
    case("searchsorted.Tensor", lambda op, x, i, b: [
        op(x.sort()[0], x + 0.1), op(x.sort()[0], x, right=True),
        op(x[0, 0].sort()[0], x, side="right", out_int32=True),
        op(x, x * 2, sorter=x.argsort())]),
    case("searchsorted.Scalar", lambda op, x, i, b: op(x[0, 0].sort()[0], 0.3)),
    case("bucketize.Tensor", lambda op, x, i, b: [
        op(x, x[0, 0].sort()[0]), op(i, torch.tensor([0, 1, 2]), right=True)]),
    case("histc.default", lambda op, x, i, b: [op(x, 5, -1, 1), op(x, 4), op(x * 0, 3)]),
    case("grid_sampler_2d.default", lambda op, x, i, b: [
        op(x[None], x[None, :, :3, :2] * 2, *how) for how in SOME]),
    case("grid_sampler_3d.default", lambda op, x, i, b: [
        op(x[None, None], x[:1, :, :3].reshape(1, 2, 2, 1, 3) * 2, *how) for how in SOME[:2]]),
    *(case(f"_embedding_bag{suffix}.default", lambda op, x, i, b: [
        op(x[0], i[0, 0], torch.tensor([0, 2, 2, 5]), mode=mode, padding_idx=padding)[0]
        for mode in range(3) for padding in (-1, 1)]) for suffix in ("", "_forward_only")),
    case("_embedding_bag.default", lambda op, x, i, b: [
        op(x[0], i[0, 0], torch.tensor([0, 4, 6]), include_last_offset=True)[0],
        op(x[0], i[0, 0], i[0, :2, 0].cumsum(0) * 0 + torch.tensor([0, 4]), mode=0,
           per_sample_weights=x[0, 0])[0]]),
    *(case(f"adaptive_max_pool{n}d.default", lambda op, x, i, b, n=n: [
        *op(x[None] if n == 3 else x, [2, 4, 5][-n:]), *op(x[None], [3, 3, 7][-n:])])
      for n in (2, 3)),
    case("max_unpool2d.default", lambda op, x, i, b: op(
        *torch.ops.aten.max_pool2d_with_indices.default(x[None], [2, 2]), [4, 6])),
]  # fmt: skip

# Of x: f32 [a, b, c], no two equal; i: i64 [a, b, c]; n: f32 [a, b, c] with NaN.
ORDERS = [
    *(case(f"{name}.default", lambda op, x, i, n: [
        *op(x, 1), *op(i, -1), *op(n, 0), *op(n, 2)]) for name in ("cummax", "cummin")),
    case("kthvalue.default", lambda op, x, i, n: [
        *op(x, 2, 1), *op(x, 1, -1, True), op(i, 2, 1)[0]]),
    case("median.default", lambda op, x, i, n: [op(x), op(i), op(n)]),
    case("median.dim", lambda op, x, i, n: [*op(x, 1), *op(x, -1, True), op(i, 1)[0], op(n, 2)[0]]),
    case("nanmedian.default", lambda op, x, i, n: [op(x), op(n), op(i)]),
    case("nanmedian.dim", lambda op, x, i, n: [*op(x, 1), op(n, 2, True)[0], op(n, 1)[0]]),
    case("mode.default", lambda op, x, i, n: [*op(i % 3, 1), *op(i % 3, 2, True)]),
    case("nonzero_static.default", lambda op, x, i, n: [
        op(i % 3, size=4), op(i % 2, size=99, fill_value=-7), op(x[0, 0] > 0, size=2)]),
]  # fmt: skip
