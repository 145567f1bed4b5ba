"""Models as files in use have them run, and give what PyTorch gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nacre import core
from nacre.core.module import TensorType
from nacre.nac.format.file import to_bytes
from nacre.nac.program.canonical import canonical
from nacre.nac.program.lift import lift
from nacre.nac.program.lower import lower
from nacre.nac.run.model import load
from nacre.nac.verify import verify
from tests.nac.practice import practised
from tests.nac.tolerance import assert_close

torch = pytest.importorskip("torch")
nn = torch.nn
F = nn.functional


class Residual(nn.Module):  # type: ignore[misc,name-defined]
    """A stage of a ResNet."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.one, self.two = nn.Conv2d(8, 8, 3, 1, 1), nn.Conv2d(8, 8, 3, 1, 1, groups=4)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:  # noqa: ANN401
        x = self.pool(F.relu(self.norm(self.stem(x))))
        x = F.relu(self.two(F.hardswish(self.one(x))) + x)
        return F.log_softmax(self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)), -1)


class Attention(nn.Module):  # type: ignore[misc,name-defined]
    """A layer of GPT-2, with its mask and its tables."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50, 32), nn.Embedding(16, 32)
        self.norm, self.last = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 128), nn.Linear(128, 32)

    def forward(self, ids: Any) -> Any:  # noqa: ANN401
        n, t = ids.shape
        x = self.words(ids) + self.places(torch.arange(t))
        q, k, v = self.qkv(self.norm(x)).split(32, -1)
        q, k, v = (part.view(n, t, 4, 8).transpose(1, 2) for part in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, t, 32))
        x = x + self.down(F.gelu(self.up(self.last(x)), approximate="tanh"))
        return x @ self.words.weight.T, x.mean((1, 2), keepdim=True)


class Masked(nn.Module):  # type: ignore[misc,name-defined]
    """Attention by hand, with a mask that is made in the graph."""

    def forward(self, x: Any, lengths: Any) -> Any:  # noqa: ANN401
        t = x.shape[1]
        seen = torch.arange(t)[None, :] < lengths[:, None]
        scores = (x @ x.transpose(1, 2)) / 4 + torch.triu(torch.full((t, t), -1e9), diagonal=1)
        scores = scores.masked_fill(~seen[:, None, :], float("-inf"))
        mixed = torch.softmax(scores, -1, dtype=torch.float32) @ x
        pooled = torch.where(seen[..., None], mixed, torch.zeros(())).sum(1)
        return torch.cat([pooled, pooled.clamp(-0.5, 0.5)], -1), lengths.float().rsqrt()


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], tuple[Any, ...]]]] = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Dropout(), nn.Linear(16, 4)),
        lambda: (torch.randn(3, 8),),
    ),
    "residual": (Residual, lambda: (torch.randn(2, 3, 32, 32),)),
    "attention": (Attention, lambda: (torch.randint(0, 50, (2, 12)),)),
    "masked": (Masked, lambda: (torch.randn(2, 6, 16), torch.tensor([4, 6]))),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True),
        lambda: (torch.randn(2, 5, 16),),
    ),
    "unet": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3, padding="same"), nn.GroupNorm(2, 8), nn.Mish(),
            nn.Upsample(scale_factor=2, mode="bilinear"), nn.PixelUnshuffle(2),
            nn.ConvTranspose2d(32, 4, 2, 2), nn.AvgPool2d(2), nn.ReflectionPad2d(1),
        ),
        lambda: (torch.randn(1, 3, 8, 8),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_model_runs_as_it_is_written_in_practice(name: str) -> None:
    torch.manual_seed(3)
    make, example = MODELS[name]
    module, args = make().eval(), example()
    raw = to_bytes(practised(module, args))
    assert [d for d in verify(raw) if d.code != "NAC26"] == []
    model = load(raw)
    inputs = {i.name: a.numpy() for i, a in zip(model.inputs, args, strict=True)}
    with torch.no_grad():
        wanted = module(*args)
    outputs = wanted if isinstance(wanted, tuple) else (wanted,)
    found = model.run(inputs)
    for one, other in zip(found, outputs, strict=True):
        assert one.shape == tuple(other.shape)
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-4, atol=1e-5)
    types = {k: TensorType({"float32": "f32", "int64": "i64"}[str(v.dtype)], v.shape)
             for k, v in inputs.items()}  # fmt: skip
    written = model.session(optimise=False)
    lifted = core.evaluate(lift(model, types), inputs)
    for _ in range(2):
        for one, other in zip(lifted, written.run(inputs), strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in zip(lifted, found, strict=True):
        assert_close(other, one)


@pytest.mark.sampled(3)
@pytest.mark.heavy("large on purpose")
@pytest.mark.parametrize("name", MODELS)
def test_a_model_brought_in_is_lowered_bit_for_bit(name: str) -> None:
    torch.manual_seed(3)
    make, example = MODELS[name]
    module, args = make().eval(), example()
    brought = core.canonicalise(core.from_torch(module, args))
    raw = to_bytes(lower(brought))
    assert verify(raw) == []
    model = load(raw)
    inputs = {i.name: a.numpy() for i, a in zip(model.inputs, args, strict=True)}
    wanted = core.evaluate(brought, inputs)
    written = model.session(optimise=False)
    for _ in range(2):
        for one, other in zip(written.run(inputs), wanted, strict=True):
            np.testing.assert_array_equal(one, other)
        for one, other in zip(model.run(inputs), wanted, strict=True):
            assert_close(one, other)
    assert to_bytes(lower(lift(model))) == raw
    assert lift(model) == canonical(brought)
