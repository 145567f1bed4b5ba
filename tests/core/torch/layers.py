"""The groups of calls with weights: products, windows, normalisation, other sizes."""

from __future__ import annotations

import pytest

from tests.core.torch.calls import Case, case

torch = pytest.importorskip("torch")

# Of a: f32 [m, k], b: f32 [k, n].
PRODUCTS = [
    case("linear.default", lambda op, a, b: [
        op(a, b.T), op(a, b.T, b[0]), op(a[None, None], b.T), op(a[0], b.T, b[0]), op(a, b[:, 0])]),
    case("matmul.default", lambda op, a, b: [
        op(a, b), op(a[0], b), op(a, b[:, 0]), op(a[0], b[:, 0]), op(a[None], b),
        op(a.expand(3, 2, -1, -1), b.expand(2, -1, -1)), op(a.expand(2, -1, -1), b[:, 0])]),
    case("mm.default", lambda op, a, b: op(a, b)),
    case("bmm.default", lambda op, a, b: op(a.expand(2, -1, -1), b.expand(2, -1, -1))),
    case("mv.default", lambda op, a, b: op(a, b[:, 0])),
    case("dot.default", lambda op, a, b: op(a[0], b[:, 0])),
    case("addmm.default", lambda op, a, b: [
        op(b[0], a, b), op(b[:1], a, b, beta=0.5, alpha=2), op(b[0], a, b, beta=0)]),
    case("addmv.default", lambda op, a, b: op(a[:, 0], a, b[:, 0], beta=2)),
    case("baddbmm.default", lambda op, a, b: op(
        b[0], a.expand(2, -1, -1), b.expand(2, -1, -1), beta=1, alpha=3)),
]  # fmt: skip

# Of q: f32 [2, 4, l, e]; k, v: f32 [2, 4, s, e].
ATTENTION = [
    case("scaled_dot_product_attention.default", lambda op, q, k, v: [
        op(q, k, v), op(q, k, v, is_causal=True), op(q, k, v, scale=0.3),
        op(q, k, v, (q @ k.mT) > 0), op(q, k, v, (q @ k.mT)[:1, :1]),
        op(q, k[:, :2], v[:, :2], enable_gqa=True), op(q[0], k[0], v[0])]),
    case("_scaled_dot_product_flash_attention_for_cpu.default",
         lambda op, q, k, v: op(q, k, v, 0.0, False)[0]),
]  # fmt: skip

# Of x: f32 [n, 4, h, w], h and w at least 6; w: f32 [6, 2, 3, 3]; b: f32 [6].
WINDOWS = [
    case("conv2d.default", lambda op, x, w, b: [
        op(x, w, b, [2, 1], [1, 2], [1, 2], 2), op(x, w, None, groups=2), op(x[0], w, b, groups=2),
        op(x, w.repeat(1, 2, 1, 1))]),
    case("conv2d.padding", lambda op, x, w, b: [
        op(x, w, b, padding="same", groups=2), op(x, w, b, padding="valid", groups=2),
        op(x, w[..., :2], b, padding="same", groups=2)]),
    case("conv1d.default", lambda op, x, w, b: op(x[:, :, 0], w[:, :, 0], b, [2], [1], [1], 2)),
    case("conv1d.padding", lambda op, x, w, b: op(
        x[:, :, 0], w[:, :, 0], b, padding="same", groups=2)),
    case("conv3d.default", lambda op, x, w, b: op(
        x[:, :, None], w[:, :, None], b, [1, 2, 1], [0, 1, 1], [1, 1, 1], 2)),
    case("conv3d.padding", lambda op, x, w, b: op(
        x[:, :, None], w[:, :, None], b, padding="same", groups=2)),
    case("convolution.default", lambda op, x, w, b: [
        op(x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 2),
        op(x, w[:4], b[:4], [2, 2], [1, 1], [1, 1], True, [1, 0], 2)]),
    case("conv_transpose2d.input", lambda op, x, w, b: [
        op(x, w[:4], b[:2], [2, 2], [1, 0], [1, 1]),
        op(x, w[:4], b[:4], [2, 1], [0, 0], [1, 0], 2)]),
    case("conv_transpose1d.default", lambda op, x, w, b: op(x[:, :, 0], w[:4, :, 0], b[:2], [2])),
    case("conv_transpose3d.input", lambda op, x, w, b: op(
        x[:, :, None], w[:4, :, None], None, [1, 2, 2])),
    *(case(f"max_pool2d{suffix}.default", lambda op, x, w, b, n=n: [
        part if n == 0 else part[0] for part in (
            op(x, [3, 2]), op(x, [3, 3], [2, 2], [1, 1]), op(x, [3], [2], [1], [2], True))])
      for n, suffix in enumerate(("", "_with_indices"))),
    *(case(f"max_pool1d{suffix}.default", lambda op, x, w, b, n=n: [
        part if n == 0 else part[0] for part in (op(x[:, 0], [3], [2], [1]),)])
      for n, suffix in enumerate(("", "_with_indices"))),
    *(case(f"max_pool3d{suffix}.default", lambda op, x, w, b, n=n: [
        part if n == 0 else part[0] for part in (op(x[None], [1, 3, 2], [1, 2, 2]),)])
      for n, suffix in enumerate(("", "_with_indices"))),
    case("avg_pool2d.default", lambda op, x, w, b: [
        op(x, [2, 3]), op(x, [3, 3], [2, 2], [1, 1]), op(x, [3, 3], [2, 2], [1, 1], True, False),
        op(x, [3, 3], [2, 2], [1, 1], True), op(x, [2, 2], [2, 2], [0, 0], False, True, 3),
        op(x[0], [2, 2])]),
    case("avg_pool1d.default", lambda op, x, w, b: op(x[:, 0], [3], [2], [1])),
    case("avg_pool3d.default", lambda op, x, w, b: op(x[None], [2, 2, 2], [1, 2, 2])),
    case("adaptive_avg_pool1d.default", lambda op, x, w, b: [op(x[:, 0], [1]), op(x[:, 0], [5])]),
    case("adaptive_avg_pool2d.default", lambda op, x, w, b: [
        op(x, [1, 1]), op(x, [x.shape[2] // 2, x.shape[3]]) if x.shape[2] % 2 == 0 else x,
        op(x, [5, 4]), op(x[0], [3, 5])]),
    case("_adaptive_avg_pool2d.default", lambda op, x, w, b: op(x, [4, 5])),
    case("adaptive_avg_pool3d.default", lambda op, x, w, b: op(x[None], [2, 5, 4])),
    case("_adaptive_avg_pool3d.default", lambda op, x, w, b: op(x[None], [1, 5, 4])),
    case("adaptive_max_pool1d.default", lambda op, x, w, b: op(x[:, 0], [1])[0]),
    case("adaptive_max_pool2d.default", lambda op, x, w, b: op(x[:, :, :6, :6], [3, 2])[0]),
    case("adaptive_max_pool3d.default", lambda op, x, w, b: op(
        x[None, :, :, :6, :6], [2, 3, 6])[0]),
]  # fmt: skip

# Of x: f32 [n, 4, h, w]; s, t: f32 [4].
NORMS = [
    case("layer_norm.default", lambda op, x, s, t: [
        op(x, [x.shape[3]]), op(x, list(x.shape[2:])), op(x.transpose(1, 3), [4], s, t, 1e-3),
        op(x.transpose(1, 3), [4], None, t), op(x.transpose(1, 3), [4], s)]),
    case("native_layer_norm.default", lambda op, x, s, t: op(
        x.transpose(1, 3), [4], s, t, 1e-5)[0]),
    case("rms_norm.default", lambda op, x, s, t: [
        op(x.transpose(1, 3), [4], s, 1e-6), op(x.transpose(1, 3), [4])]),
    case("_fused_rms_norm.default", lambda op, x, s, t: op(x.transpose(1, 3), [4], s, 1e-6)[0]),
    case("group_norm.default", lambda op, x, s, t: [
        op(x, 2, s, t), op(x, 4), op(x, 1, None, t)]),
    case("native_group_norm.default", lambda op, x, s, t: op(
        x, s, t, x.shape[0], 4, x.shape[2] * x.shape[3], 2, 1e-5)[0]),
    case("instance_norm.default", lambda op, x, s, t: [
        op(x, s, t, None, None, True, 0.1, 1e-5, False),
        op(x, s, None, t, s.abs(), False, 0.1, 1e-5, False)]),
    case("batch_norm.default", lambda op, x, s, t: [
        op(x, s, t, t, s.abs(), False, 0.1, 1e-5, False),
        op(x, None, None, t, s.abs(), False, 0.1, 1e-3, False)]),
    case("_native_batch_norm_legit_no_training.default", lambda op, x, s, t: op(
        x, s, t, t, s.abs(), 0.1, 1e-5)[0]),
    case("_native_batch_norm_legit.default", lambda op, x, s, t: op(
        x, s, t, t.clone(), s.abs(), False, 0.1, 1e-5)[0]),
    case("_native_batch_norm_legit_functional.default", lambda op, x, s, t: op(
        x, s, t, t, s.abs(), False, 0.1, 1e-5)[0]),
    case("native_batch_norm.default", lambda op, x, s, t: op(
        x, s, t, t, s.abs(), False, 0.1, 1e-5)[0]),
    case("_batch_norm_no_update.default", lambda op, x, s, t: op(
        x, s, t, t, s.abs(), 0.1, 1e-5)[0]),
]  # fmt: skip


def _sized(n: int) -> list[Case]:
    """Both overloads of a call that gives planes of n axes another size."""
    names = {
        1: ("upsample_nearest1d", "_upsample_nearest_exact1d"),
        2: ("upsample_nearest2d", "_upsample_nearest_exact2d"),
        3: ("upsample_nearest3d", "_upsample_nearest_exact3d"),
    }[n]
    return [
        made
        for name in names
        for made in (
            case(f"{name}.vec", lambda op, *xs: [
                op(xs[n - 1], None, [2.0] * n), op(xs[n - 1], [5] * n, None),
                op(xs[n - 1], None, [1.7] * n)]),
            case(f"{name}.default", lambda op, *xs: op(xs[n - 1], [4] * n)),
        )
    ]  # fmt: skip


def _smooth(name: str, n: int) -> list[Case]:
    corners = not name.endswith("_aa")  # both together are refused
    return [
        case(f"{name}.vec", lambda op, *xs: [
            op(xs[n - 1], None, False, [2.0] * n), op(xs[n - 1], [5] * n, False, None),
            op(xs[n - 1], [5] * n, corners, None), op(xs[n - 1], None, False, [1.7] * n)]),
        case(f"{name}.default", lambda op, *xs: [
            op(xs[n - 1], [4] * n, False), op(xs[n - 1], [2] * n, corners)]),
    ]  # fmt: skip


# Of x1, x2, x3: f32 [2, 3, ..] with so many axes behind.
SIZES = [
    *_sized(1), *_sized(2), *_sized(3),
    *_smooth("upsample_linear1d", 1), *_smooth("upsample_bilinear2d", 2),
    *_smooth("upsample_trilinear3d", 3), *_smooth("upsample_bicubic2d", 2),
    *_smooth("_upsample_bilinear2d_aa", 2), *_smooth("_upsample_bicubic2d_aa", 2),
]  # fmt: skip
