"""Networks as people write them in PyTorch: compiled in floats and integers, held to PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nacre
from nacre.compile.bundle.bundle import Bundle
from tests.compile.legalise.samples import Array

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
Make = Callable[[Any], Any]  # one input, by a generator
RUNS = [("npm16k", "f16"), ("npm4k", "i8")]


class Shuffled(nn.Module):  # type: ignore[misc, name-defined]
    """Channels in two halves, one of which goes through a block, and then change places."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 24, 3, 2, 1), nn.BatchNorm2d(24), nn.ReLU())
        self.block = nn.Sequential(
            nn.Conv2d(12, 12, 1), nn.BatchNorm2d(12), nn.ReLU(),
            nn.Conv2d(12, 12, 3, 1, 1, groups=12), nn.Conv2d(12, 12, 1), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(24, 10)

    def forward(self, x: Any) -> Any:  # noqa: ANN401 - torch's own types
        x = F.max_pool2d(self.stem(x), 3, 2, 1)
        for _ in range(2):
            left, right = x.chunk(2, 1)
            x = torch.cat([left, self.block(right)], 1)
            n, c, h, w = x.shape
            x = x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        return self.head(x.mean([2, 3]))


class Twins(nn.Module):  # type: ignore[misc, name-defined]
    """Two pictures through one network, and how alike they are."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(16, 32, 3, 2, 1),
            nn.LeakyReLU(0.1), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 64),
        )  # fmt: skip
        self.head = nn.Linear(64, 1)

    def forward(self, a: Any, b: Any) -> Any:  # noqa: ANN401
        a, b = F.normalize(self.each(a)), F.normalize(self.each(b))
        return F.cosine_similarity(a, b), torch.sigmoid(self.head((a - b).abs()))


class Segments(nn.Module):  # type: ignore[misc, name-defined]
    """Windows with gaps of several widths, a mean of all, and the class of each pixel."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU6())
        wide = [nn.Conv2d(16, 8, 3, padding=r, dilation=r) for r in (2, 4)]
        self.each = nn.ModuleList([nn.Conv2d(16, 8, 1), *wide])
        self.mean, self.head = nn.Conv2d(16, 8, 1), nn.Conv2d(32, 9, 1)

    def forward(self, x: Any) -> Any:  # noqa: ANN401
        y = self.stem(x)
        mean = F.relu(self.mean(F.adaptive_avg_pool2d(y, 1)))
        mean = F.interpolate(mean, size=y.shape[2:], mode="bilinear", align_corners=False)
        z = self.head(torch.cat([*(F.relu(one(y)) for one in self.each), mean], 1))
        z = F.interpolate(z, size=x.shape[2:], mode="bilinear", align_corners=False)
        return z, z.argmax(1)


class Gated(nn.Module):  # type: ignore[misc, name-defined]
    """Windows over one axis that look back ever further."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv1d(1, 16, 1), nn.Conv1d(24, 32, 1)
        self.each = nn.ModuleList([nn.Conv1d(16, 32, 2, dilation=2**k) for k in range(4)])
        self.on = nn.ModuleList([nn.Conv1d(16, 16, 1) for _ in range(4)])
        self.out = nn.ModuleList([nn.Conv1d(16, 24, 1) for _ in range(4)])

    def forward(self, x: Any) -> Any:  # noqa: ANN401
        x, total = self.first(x), 0
        for k, (each, on, out) in enumerate(zip(self.each, self.on, self.out, strict=True)):
            a, b = each(F.pad(x, (2**k, 0))).chunk(2, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            x, total = x + on(y), total + out(y)
        return self.last(F.relu(total))


class Step(nn.Module):  # type: ignore[misc, name-defined]
    """One token, with a cache of keys and values that is written at its place."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(200, 64), nn.Linear(64, 200)
        self.three, self.one = nn.Linear(64, 192), nn.Linear(64, 64)
        self.norm = nn.LayerNorm(64)

    def forward(self, token: Any, at: Any, keys: Any, values: Any) -> Any:  # noqa: ANN401
        x = self.table(token)
        q, k, v = (
            part.view(1, 1, 4, 16).transpose(1, 2) for part in self.three(self.norm(x)).chunk(3, -1)
        )
        keys, values = keys.index_copy(2, at, k), values.index_copy(2, at, v)
        seen = (torch.arange(32) <= at).view(1, 1, 1, 32)
        chances = ((q @ keys.transpose(-1, -2)) / 4).masked_fill(~seen, -1e9).softmax(-1)
        x = x + self.one((chances @ values).transpose(1, 2).reshape(1, 1, 64))
        return self.head(x), keys, values


class Detector(nn.Module):  # type: ignore[misc, name-defined]
    """A pyramid of features, and the boxes of the best places."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 32, 3, 2, 1)
        self.la, self.lb, self.head = (
            nn.Conv2d(16, 16, 1),
            nn.Conv2d(32, 16, 1),
            nn.Conv2d(16, 12, 1),
        )

    def forward(self, x: Any) -> Any:  # noqa: ANN401
        a = F.silu(self.a(x))
        b = self.lb(F.silu(self.b(a)))
        parts = b, self.la(a) + F.interpolate(b, scale_factor=2)
        z = torch.cat([self.head(part).flatten(2) for part in parts], 2).transpose(1, 2)
        chances = z[..., 4:].sigmoid().amax(-1)
        return z[..., :4], chances, (chances > 0.5).sum(1)


class Samples(nn.Module):  # type: ignore[misc, name-defined]
    """A network that gives bytes: a picture of twice the size."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 12, 3, padding=1)

    def forward(self, x: Any) -> Any:  # noqa: ANN401
        y = F.pixel_shuffle(self.b(F.relu(self.a(x))), 2)
        return (y.sigmoid() * 255).clamp(0, 255).to(torch.uint8)


def reals(*shape: int) -> Make:
    return lambda generator: torch.randn(*shape, generator=generator)


def tokens(most: int, *shape: int) -> Make:
    return lambda generator: torch.randint(0, most, shape, generator=generator)


NETWORKS: dict[str, tuple[Callable[[], Any], list[Make]]] = {
    "shuffled": (Shuffled, [reals(1, 3, 48, 48)]),
    "twins": (Twins, [reals(2, 1, 32, 32), reals(2, 1, 32, 32)]),
    "segments": (Segments, [reals(1, 3, 32, 32)]),
    "gated": (Gated, [reals(1, 1, 120)]),
    "step": (Step, [tokens(200, 1, 1), tokens(31, 1), reals(1, 4, 32, 16), reals(1, 4, 32, 16)]),
    "detector": (Detector, [reals(1, 3, 48, 48)]),
    "samples": (Samples, [reals(1, 3, 16, 16)]),
}


def network_of(name: str) -> tuple[Any, list[Make]]:
    """A network whose norms have seen something."""
    torch.manual_seed(1)
    kind, makers = NETWORKS[name]
    network, generator = kind().train(), torch.Generator().manual_seed(5)
    with torch.no_grad():
        for _ in range(8):
            network(*(make(generator) for make in makers))
    return network.eval(), makers


@pytest.mark.heavy("compiles networks")
@pytest.mark.sampled(5)
@pytest.mark.parametrize(("device", "precision"), RUNS)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network(name: str, device: str, precision: Any) -> None:  # noqa: ANN401
    network, makers = network_of(name)
    generator = torch.Generator().manual_seed(9)
    args = tuple(make(generator) for make in makers)
    module = nacre.core.from_torch(network, args)
    names = list(module.input_types)

    def feeds(given: tuple[Any, ...]) -> dict[str, Array]:
        return {n: a.numpy() for n, a in zip(names, given, strict=True)}

    samples = [feeds(tuple(make(generator) for make in makers)) for _ in range(8)]
    more = {"calibration": samples} if precision == "i8" else {}
    bundle: Bundle = nacre.compile(module, device, precision, **more)  # type: ignore[arg-type]
    assert bundle.problems == ()
    with torch.no_grad():
        made = network(*args)
    expected = [one.numpy() for one in (made if isinstance(made, tuple) else (made,))]
    validation = bundle.validate(feeds(args), expected)
    assert validation.ok, str(validation)
    assert [a.dtype for a in bundle.run(feeds(args)).values()] == [a.dtype for a in expected]
    assert all(np.isfinite(a).all() for a in expected)
