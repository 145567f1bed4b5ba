"""Layers that users build models of, each with arguments that change what it does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.torch.functions import PLANES, Row, X, f, i

torch = pytest.importorskip("torch")

nn, F = torch.nn, torch.nn.functional
Tensor = Any  # or a layer
ACTIVATIONS = (
    nn.ELU(), nn.SELU(), nn.CELU(0.5), nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Mish(),
    nn.Softplus(2), nn.Softsign(), nn.Tanhshrink(), nn.Hardshrink(), nn.Softshrink(), nn.Hardtanh(),
    nn.Hardsigmoid(), nn.Hardswish(), nn.ReLU6(), nn.LogSigmoid(), nn.LeakyReLU(0.2), nn.RReLU(),
    nn.Threshold(0.1, 20.0), nn.Softmin(1), nn.LogSoftmax(1), nn.PReLU(4), nn.PReLU(), nn.GLU(1),
    nn.Softmax2d(),
)  # fmt: skip


class Called(nn.Module):  # type: ignore[misc, name-defined]
    """A layer that is called with more than one tensor."""

    def __init__(self, layer: Tensor, call: Tensor) -> None:
        super().__init__()
        self.layer, self.call = layer, call

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.call(self.layer, *inputs)


def _hidden(*lengths: int) -> Tensor:
    return torch.arange(5) >= torch.tensor(lengths)[:, None]


def _bags(mode: str, **given: int) -> Row:
    layer = nn.EmbeddingBag(10, 3, mode=mode, **given)
    return Row(f"EmbeddingBag {mode} {given}", layer, [i(0, 4, 4, 5)])


POOLS = [
    Row("adaptive pools", lambda a: [
        pool(a, size) for pool in (F.adaptive_avg_pool2d, F.adaptive_max_pool2d)
        for size in (3, (None, 3), (9, 10), 1)], [PLANES]),
    Row("adaptive pools of one and three axes", lambda a: [
        F.adaptive_avg_pool1d(a[0], 5), F.adaptive_max_pool1d(a[0], 5),
        F.adaptive_max_pool3d(a, (2, 3, 3)), F.adaptive_avg_pool3d(a, (2, 3, 3))], [PLANES]),
    Row("avg_pool2d", lambda a: [
        F.avg_pool2d(a, 3, 2, 1, ceil, count, divisor)
        for ceil in (False, True) for count in (False, True) for divisor in (None, 5)], [PLANES]),
    Row("lp_pool", lambda a: [
        F.lp_pool2d(a.abs(), 2, 3), F.lp_pool2d(a.abs(), 3, (2, 3), 2),
        F.lp_pool1d(a[0], 1, 3, ceil_mode=True)], [PLANES]),
    Row("max_pool with places", lambda a: [
        *F.max_pool2d(a, 3, 2, 1, return_indices=True),
        *F.max_pool2d(a, 3, 2, 1, ceil_mode=True, return_indices=True),
        *F.max_pool2d(a, 2, 2, dilation=2, return_indices=True),
        *F.max_pool1d(a[0], 2, return_indices=True), *F.max_pool3d(a, 2, return_indices=True)],
        [PLANES]),
    Row("max_unpool2d", lambda a: F.max_unpool2d(
        *F.max_pool2d(a, 2, return_indices=True), 2), [f(2, 3, 6, 8)]),
    Row("interpolate", lambda a: [
        F.interpolate(a, mode=mode, size=(3, 11))
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")], [PLANES]),
    Row("interpolate by factors", lambda a: [
        F.interpolate(a, mode=mode, scale_factor=factor)
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")
        for factor in (2, (1.7, 0.6))], [PLANES]),
    Row("interpolate with align_corners", lambda a: [
        F.interpolate(a, size=size, mode=mode, align_corners=True)
        for mode in ("bilinear", "bicubic") for size in ((3, 11), (14, 5))], [PLANES]),
    Row("interpolate with antialias", lambda a: [
        F.interpolate(a, size=size, mode=mode, antialias=True)
        for mode in ("bilinear", "bicubic") for size in ((3, 5), (11, 15))], [PLANES]),
    Row("affine_grid", lambda t: [
        F.affine_grid(t, [2, 3, 4, 5], align_corners=c) for c in (False, True)], [f(2, 2, 3)]),
]  # fmt: skip

LAYERS = [
    *(Row(repr(layer), layer, [PLANES]) for layer in ACTIVATIONS),
    Row("GroupNorm", nn.GroupNorm(2, 4), [PLANES]),
    Row("InstanceNorm", nn.InstanceNorm2d(4, affine=True), [PLANES]),
    Row("InstanceNorm with statistics", nn.InstanceNorm2d(4, track_running_stats=True), [PLANES]),
    Row("LocalResponseNorm", nn.LocalResponseNorm(3, 0.1, 0.7, 1.5), [PLANES]),
    Row("LocalResponseNorm, even", nn.LocalResponseNorm(2, 0.1), [PLANES]),
    Row("BatchNorm1d", nn.BatchNorm1d(4), [X]),
    Row("BatchNorm3d", nn.BatchNorm3d(3), [f(2, 3, 4, 4, 4)]),
    Row("RMSNorm", nn.RMSNorm(8), [PLANES]),
    Row("dropouts", nn.Sequential(nn.Dropout(), nn.Dropout2d(), nn.AlphaDropout()), [PLANES]),
    Row("ConvTranspose1d", nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, 2, dilation=2), [X]),
    Row("ConvTranspose2d", nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2, bias=False), [PLANES]),
    Row("ConvTranspose3d", nn.ConvTranspose3d(3, 2, 3, (1, 2, 2)), [f(1, 3, 3, 4, 4)]),
    Row("Conv2d, reflect", nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"), [PLANES]),
    Row("Conv2d, circular", nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular"), [PLANES]),
    Row("Conv2d, same", nn.Conv2d(4, 6, 3, padding="same", dilation=2), [PLANES]),
    Row("Bilinear", nn.Bilinear(4, 5, 2), [f(3, 4), f(3, 5)]),
    *(_bags(mode, **given) for mode in ("sum", "mean", "max")
      for given in ({}, {"padding_idx": 2})),
    Row("EmbeddingBag with offsets", nn.EmbeddingBag(10, 3), [
        i(0, 10, 9), torch.tensor([0, 2, 5, 5])]),
    *(Row(f"{kind.__name__} of two layers, both ways", kind(
        4, 5, 2, bidirectional=True, batch_first=True), [f(2, 3, 4)])
      for kind in (nn.LSTM, nn.GRU, nn.RNN)),
    Row("RNN with relu", nn.RNN(4, 5, nonlinearity="relu", bias=False), [f(3, 4)]),
    Row("LSTM with projection", nn.LSTM(4, 5, 2, proj_size=3, bidirectional=True), [f(3, 2, 4)]),
    Row("LSTM from a state", Called(nn.LSTM(4, 5), lambda layer, a, h, c: layer(a, (h, c))),
        [f(3, 2, 4), f(1, 2, 5), f(1, 2, 5)]),
    *(Row(kind.__name__, kind(4, 5), [f(2, 4)]) for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell)),
    Row("MultiheadAttention", nn.MultiheadAttention(8, 2), [f(5, 2, 8), f(6, 2, 8), f(6, 2, 8)]),
    Row("MultiheadAttention with more keys", nn.MultiheadAttention(
        8, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True, kdim=4, vdim=3),
        [f(2, 5, 8), f(2, 6, 4), f(2, 6, 3)]),
    Row("MultiheadAttention with masks", Called(
        nn.MultiheadAttention(8, 2, batch_first=True), lambda layer, q, hidden: layer(
            q, q, q, key_padding_mask=hidden, need_weights=False,
            attn_mask=torch.ones(5, 5).triu(1) > 0)[0]),
        [f(2, 5, 8), _hidden(5, 3)]),
    Row("TransformerEncoder", nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2), [f(2, 5, 8)]),
    Row("TransformerEncoder, norm first", nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, norm_first=True, activation="gelu"), 2,
        enable_nested_tensor=False), [f(5, 2, 8)]),
    Row("TransformerDecoder", nn.TransformerDecoder(
        nn.TransformerDecoderLayer(8, 2, 16), 1), [f(5, 2, 8), f(4, 2, 8)]),
]  # fmt: skip
