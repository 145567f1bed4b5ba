"""What users call: functions and layers of PyTorch by the names of its manual, with arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch")

nn, F = torch.nn, torch.nn.functional
Tensor = Any
_SEEDED = torch.Generator().manual_seed(3)


@dataclass(frozen=True)
class Row:
    """A function or a layer, and what it is called with."""

    name: str
    call: Callable[..., Any]
    inputs: Sequence[Tensor]


def f(*shape: int) -> Tensor:
    return torch.randn(shape, generator=_SEEDED)


def i(low: int, high: int, *shape: int) -> Tensor:
    return torch.randint(low, high, shape, generator=_SEEDED)


X, Y, PLANES = f(2, 4, 6), f(2, 4, 6), f(2, 4, 7, 8)
K, COUNTS = i(-9, 10, 2, 4, 6), i(0, 5, 2, 4, 6)
LINE, SQUARE = f(7), f(5, 5)
ODD = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0, -1.0, 0.5, -2.5])
SORTED = f(2, 4, 8).sort(-1)[0]

ELEMENTS = [
    Row("bit shifts", lambda a, c: [a << 2, a >> 1, a << c, a >> c, 1 << c], [K, COUNTS]),
    Row("fmod, remainder", lambda a, c: [
        torch.fmod(a, c), torch.remainder(a, c), torch.fmod(a, 0.3), a % -0.3], [X, Y]),
    Row("fmod, remainder of integers", lambda a, c: [
        torch.fmod(a, c + 1), torch.remainder(a, c + 1), a % -3, torch.remainder(7, c + 1)],
        [K, COUNTS]),
    Row("floor_divide", lambda a, c: [a // c, torch.floor_divide(a, 2.0), a / c], [X, Y]),
    Row("floor_divide at odd places", lambda a: a[:, None] // a[None], [ODD]),
    Row("floor_divide of integers", lambda a, c: [a // (c + 1), a // -3, a / (c + 1)], [K, COUNTS]),
    Row("logaddexp", lambda a, c: [torch.logaddexp(a, c), torch.logaddexp2(a, c)], [X, Y]),
    Row("logaddexp at odd places", lambda a: torch.logaddexp(a[:, None], a[None]), [ODD]),
    Row("nan_to_num", lambda a: [torch.nan_to_num(a), torch.nan_to_num(a, 1.0, 2.0, 3.0)], [ODD]),
    Row("isnan and its like", lambda a: [
        a.isnan(), a.isinf(), a.isfinite(), a.isposinf(), a.isneginf(), a.signbit()],
        [ODD[ODD == ODD]]),
    Row("isclose, isin", lambda a, c: [torch.isclose(a, c), torch.isin(a, a[0])], [X, Y]),
    Row("round", lambda a: [a.round(), torch.round(a, decimals=2)], [X]),
    Row("erf, erfc", lambda a: [torch.erf(a), torch.erfc(a)], [torch.linspace(-6, 9, 40)]),
    Row("erfinv", lambda a: torch.erfinv(a), [torch.linspace(-1.1, 1.1, 40)]),
    Row("special", lambda a: [
        torch.special.logit(a), torch.special.entr(a), torch.special.xlogy(a, a),
        torch.special.ndtr(a), torch.special.log_ndtr(-30 * a), torch.sinc(a)],
        [torch.linspace(0.1, 0.9, 7)]),
    Row("lerp, addcmul, addcdiv", lambda a, c: [
        torch.lerp(a, c, 0.3), torch.lerp(a, c, c), torch.addcmul(a, c, c, value=0.5),
        torch.addcdiv(a, c, c + 9, value=2)], [X, Y]),
    Row("clamp", lambda a, c: [
        a.clamp(-0.5, 0.5), a.clamp(c - 1, c), a.clamp_min(0), a.clamp_max(0.3), a.clamp(min=c)],
        [X, Y]),
    Row("clamp of integers", lambda a: [a.clamp(-2, 3), a.clamp(-1.5, 2.5)], [K]),
    Row("where", lambda a, c: [
        torch.where(a > 0, a, 0.0), torch.where(a > 0, 1, c), torch.where(a > 0, 1.0, 0.0)],
        [X, Y]),
    Row("masked_fill", lambda a: [
        a.masked_fill(a > 0, -1e9), a.masked_fill(a > 0, a.sum()),
        a.masked_fill(a > 0, float("-inf"))], [X]),
    Row("casts", lambda a, c: [
        a.half().float(), a.bfloat16().float(), a.double(), a.int(), c.float(), a.bool(),
        c.to(torch.uint8), c.short()], [X, K]),
    Row("fake_quantize", lambda a: torch.fake_quantize_per_tensor_affine(a, 0.1, 3, -128, 127),
        [X]),
]  # fmt: skip


def _masked(a: Tensor) -> Tensor:
    a = a.clone()
    a[a > 0] = 1.0
    a[:, a[0, :, 0] < 0] = a[1, 0] * 2
    return a


def _sliced(a: Tensor, c: Tensor) -> Tensor:
    a = a.clone()
    a[:, 1:3] = c[:, :2]
    a[0] = 1
    a[..., ::2] += 3
    return a


PLACES = [
    Row("masks that are assigned to", _masked, [X]),
    Row("slices that are assigned to", _sliced, [X, Y]),
    Row("fill_diagonal_", lambda a: a.clone().fill_diagonal_(3.0), [SQUARE]),
    Row("diag, trace, diag_embed", lambda a, c: [
        torch.diag(a), torch.diag(c, 1), torch.trace(a), torch.diag_embed(a, -1)], [SQUARE, LINE]),
    Row("empty tensors", lambda a: [
        torch.cat([torch.empty(0), a, a[:, :0] * 2], 1), a[:0].sum(0) + a], [X]),
    Row("gather, take", lambda a, at: [
        a.gather(1, at), torch.take(a, at), torch.take_along_dim(a, at, 1)],
        [X, i(0, 4, 2, 3, 6)]),
    Row("indices", lambda a, at: [
        a[at], a[:, at], a[at, at], a[0, at, 1:3], a[at, :, at], a[at[:, None], at[None]]],
        [X, i(0, 2, 3)]),
    Row("a known mask", lambda a: a[:, torch.tensor([True, False, True, True])].sum(1), [X]),
    Row("known places", lambda a: a[:, torch.tensor([0, 2, 0, 3]).nonzero()[:, 0]] * 2, [X]),
    Row("index_fill, index_add", lambda a, at: [
        a.index_fill(1, at, 3.0), a.index_add(1, at, a[:, :3], alpha=0.5)], [X, i(0, 4, 3)]),
    Row("repeat_interleave", lambda a: [
        a.repeat_interleave(3), a.repeat_interleave(2, 1),
        a.repeat_interleave(torch.tensor([1, 2, 0, 3]), 1)], [X]),
    Row("repeat_interleave of a known length", lambda a, n: a.repeat_interleave(
        n, 1, output_size=6), [X, torch.tensor([1, 2, 0, 3])]),
    Row("tile, roll, flip", lambda a: [
        a.tile(2), a.roll((1, 2), (0, 1)), a.roll(-3), a.flip(0, -1), a.rot90(1, (0, 1))], [X]),
    Row("tril, triu", lambda a, c: [a.tril(), a.triu(1), c.tril(-1), (a > 0).tril()], [X, K]),
    Row("meshgrid", lambda a, c: [
        *torch.meshgrid(a, c, indexing="ij"), *torch.meshgrid(a, c, indexing="xy")], [LINE, f(3)]),
    Row("chunk, split, unbind", lambda a: [
        *a.chunk(3, 2), *a.split([1, 3], 1), *a.tensor_split(4, 2), *a.unbind(1)], [X]),
    Row("stacks", lambda a, c: [
        torch.stack([a, c], 1), torch.hstack([a, c]), torch.vstack([a, c]), torch.dstack([a, c])],
        [X, Y]),
    Row("unfold and fold", lambda a: [
        a.unfold(2, 3, 2), F.unfold(a, (2, 3), dilation=(1, 2), padding=(1, 0), stride=(2, 1)),
        F.fold(F.unfold(a, 3), (7, 8), 3)], [PLANES]),
    Row("pads", lambda a: [
        F.pad(a, (1, 2)), F.pad(a, (1, 2, -1, 0), value=3.0), F.pad(a, (1, 2), mode="reflect"),
        F.pad(a, (2, 1), mode="replicate"), F.pad(a, (1, 1), mode="circular")], [X]),
    Row("pixel_shuffle, channel_shuffle", lambda a: [
        F.pixel_shuffle(a, 2), F.pixel_unshuffle(F.pixel_shuffle(a, 2), 2),
        F.channel_shuffle(a, 2)], [PLANES]),
    Row("bucketize, searchsorted", lambda s, a: [
        torch.searchsorted(s, a), torch.searchsorted(s, a, right=True),
        torch.bucketize(a, torch.tensor([-1.0, 0, 1]))], [SORTED, X]),
    Row("one_hot", lambda a: F.one_hot(a, 6), [COUNTS]),
    Row("vander, diff", lambda a: [torch.vander(a, 4), torch.diff(a)], [LINE]),
]  # fmt: skip

AXES = [
    Row("var, std", lambda a: [
        a.var(), a.std(1), a.var(1, unbiased=False), a.std((0, 2), correction=2, keepdim=True),
        *torch.var_mean(a, 1), *torch.std_mean(a, (0, 1))], [X]),
    Row("argmax among equals", lambda a: [
        a.argmax(), a.argmin(1), a.argmax(2), *a.max(1), *a.min(2)], [COUNTS]),
    Row("sort, argsort", lambda a: [*a.sort(1), *a.sort(1, descending=True), a.argsort(-1)], [X]),
    Row("stable sorts", lambda a: [
        *torch.sort(a, stable=True, dim=2), *torch.sort(a, stable=True, descending=True, dim=2)],
        [COUNTS]),
    Row("sort, topk with NaN", lambda a: [*a.sort(), *a.topk(3)], [ODD[[0, 2, 3, 4, 5, 6]]]),
    Row("topk", lambda a: [*a.topk(2), *a.topk(3, 1, False)], [X]),
    Row("any, all, count_nonzero", lambda a, c: [
        a.any(), a.all(1), c.any(2), c.all((0, 1)), c.count_nonzero(1)], [X > 0, K]),
    Row("prod, sum, nansum", lambda a, c: [
        a.prod(1), c.prod(1), c.sum(1), a.sum(dtype=torch.float64), a.nansum(1), a.nanmean(1)],
        [X, COUNTS]),
    Row("cumsum, cumprod", lambda a, c: [
        a.cumsum(1), a.cumprod(2), c.cumsum(1), c.cumprod(1), c.cumsum(0, dtype=torch.float32)],
        [X, COUNTS]),
    Row("quantile", lambda a: [
        torch.quantile(a, 0.3, 1), torch.quantile(a, torch.tensor([0.1, 0.6]), 2)], [X]),
    Row("norms", lambda a: [
        a.norm(), a.norm(1), torch.linalg.norm(a, dim=2), F.normalize(a, dim=1),
        torch.linalg.matrix_norm(a, 1), torch.renorm(a, 2, 0, 1.0)], [X]),
    Row("distances", lambda a, c: [
        torch.cdist(a, c), torch.cdist(a, c, p=1), F.pdist(a[0]), F.pairwise_distance(a, c),
        F.cosine_similarity(a, c), torch.dist(a, c)], [X, Y]),
    Row("distances of many", lambda a, c: torch.cdist(a, c), [f(40, 3), f(30, 3)]),
    Row("products", lambda a, c: [
        torch.outer(a, c), torch.inner(a, c), torch.kron(a, c), torch.cross(a[:3], c[:3], dim=0)],
        [LINE, f(7)]),
    Row("einsum", lambda a, c: [
        torch.einsum("bij,bkj->bik", a, c), torch.einsum("...ij->...ji", a),
        torch.einsum("bij,bij->", a, c), torch.einsum("ii->i", a[0, :, :4])], [X, Y]),
    Row("baddbmm and its like", lambda a, c, d: [
        torch.baddbmm(a, c, d, beta=0.5, alpha=2), torch.addmm(a[0], c[0], d[0]),
        torch.addmv(a[0, :, 0], c[0], d[0, :, 0]), torch.addbmm(a[0], c, d, beta=0.5),
        torch.addr(a[0], c[0, :, 0], d[0, 0])], [f(2, 3, 5), f(2, 3, 4), f(2, 4, 5)]),
    Row("products of integers", lambda a, c: [a @ c.mT, torch.mm(a[0], c[0].T)], [K, COUNTS]),
    Row("histc", lambda a: torch.histc(a, 5, -2, 2), [X]),
]  # fmt: skip
