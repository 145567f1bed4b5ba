"""Train the model that `nacre demo` carries, and write it with its data.

usage: python -m tools.train_demo [--epochs N] [--out FOLDER]

The data are the 1,797 handwritten digits that scikit-learn carries, 8x8 pixels of 17 shades,
enlarged to 32x32. A fifth of them, drawn with a fixed seed, is held back and never trained on; the
accuracy that is printed is that of the held-back ones. The folder gets the model as
ONNX and as Core IR, images to calibrate with (of those that were trained on) and images to try (the
first of those that were held back). Equal seeds give equal files on one machine.

It needs torch, onnx and scikit-learn.
"""

from __future__ import annotations

import argparse
import importlib
import io
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import fuse_conv_bn_eval

SEED = 8
SIDE = 32
SHADES = 16.0
HELD_BACK = 360
CALIBRATION, SAMPLES = 32, 16
BATCH = 64
SMOOTHING = 0.1
OUT = Path(__file__).resolve().parent.parent / "src" / "nacre" / "demo"

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Digits:
    """Images [N, 1, 32, 32] from 0 to 1, and which digits they show."""

    images: torch.Tensor
    labels: torch.Tensor

    def some(self, which: Array) -> Digits:
        """Those at some places."""
        index = torch.from_numpy(which)
        return Digits(self.images[index], self.labels[index])


class Unit(nn.Sequential):  # type: ignore[misc]
    """A convolution without bias, its normalisation, and a SiLU where one is wanted."""

    def __init__(
        self, cin: int, cout: int, size: int, stride: int = 1, groups: int = 1, *, act: bool = True
    ) -> None:
        made = [
            nn.Conv2d(cin, cout, size, stride, size // 2, groups=groups, bias=False),
            nn.BatchNorm2d(cout),
        ]
        super().__init__(*made, *([nn.SiLU()] if act else []))


class Gate(nn.Module):  # type: ignore[misc]
    """Squeeze and excite: every channel times a share that all pixels together decide."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.excite = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The channels, gated."""
        mean = functional.adaptive_avg_pool2d(x, 1)
        return x * torch.sigmoid(self.excite(functional.relu(self.squeeze(mean))))


class Block(nn.Module):  # type: ignore[misc]
    """Widen, convolve each channel by itself, gate, narrow; added to its input where that fits."""

    def __init__(self, cin: int, wide: int, cout: int, stride: int = 1) -> None:
        super().__init__()
        self.widen = Unit(cin, wide, 1)
        self.each = Unit(wide, wide, 3, stride, groups=wide)
        self.gate = Gate(wide, wide // 4)
        self.narrow = Unit(wide, cout, 1, act=False)
        self.is_residual = stride == 1 and cin == cout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's result."""
        y = self.narrow(self.gate(self.each(self.widen(x))))
        return x + y if self.is_residual else y


class DigitNet(nn.Module):  # type: ignore[misc]
    """A small network with the parts of the large mobile ones."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Unit(1, 16, 3)
        self.pool = nn.MaxPool2d(2)
        self.blocks = nn.Sequential(
            Block(16, 48, 16), Block(16, 64, 32, stride=2), Block(32, 96, 32), Block(32, 96, 32)
        )
        self.head = Unit(32, 96, 1)
        self.classify = nn.Linear(96, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The chances of the ten digits."""
        y = self.head(self.blocks(self.pool(self.stem(x))))
        mean = functional.adaptive_avg_pool2d(y, 1).flatten(1)
        return torch.softmax(self.classify(mean), dim=1)


def digits() -> tuple[Digits, Digits]:
    """Those to train on, and those that are held back."""
    data = importlib.import_module("sklearn.datasets").load_digits()
    small = torch.from_numpy(data.images.astype(np.float32) / SHADES)[:, None]
    images = functional.interpolate(small, (SIDE, SIDE), mode="bilinear", align_corners=False)
    every = Digits(images, torch.from_numpy(data.target.astype(np.int64)))
    order = np.random.default_rng(SEED).permutation(len(data.target))
    return every.some(order[HELD_BACK:]), every.some(order[:HELD_BACK])


def moved(images: torch.Tensor) -> torch.Tensor:
    """Images turned, scaled and shifted a little, each in its own way."""
    count = len(images)
    turn = (torch.rand(count) - 0.5) * 0.4
    scale = 1 + (torch.rand(count, 2) - 0.5) * 0.25
    shift = (torch.rand(count, 2) - 0.5) * 0.25
    cos, sin = turn.cos(), turn.sin()
    rows = [
        torch.stack([scale[:, 0] * cos, -scale[:, 0] * sin, shift[:, 0]], 1),
        torch.stack([scale[:, 1] * sin, scale[:, 1] * cos, shift[:, 1]], 1),
    ]
    grid = functional.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def smoothed_loss(chances: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross entropy against labels that are not quite certain.

    A network that is sure of everything has chances of 0 and 1, in which no error of quantisation
    shows.
    """
    logs = torch.log(chances + 1e-9)
    return (1 - SMOOTHING) * functional.nll_loss(logs, labels) - SMOOTHING * logs.mean()


def trained(data: Digits, epochs: int) -> DigitNet:
    """The network after some rounds over the data."""
    torch.manual_seed(SEED)
    net = DigitNet()
    optimizer = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=1e-2)
    steps = epochs * -(-len(data.labels) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
    for epoch in range(epochs):
        net.train()
        total = 0.0
        for part in torch.randperm(len(data.labels)).split(BATCH):
            loss = smoothed_loss(net(moved(data.images[part])), data.labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(part)
        print(f"epoch {epoch + 1} of {epochs}: loss {total / len(data.labels):.4f}", flush=True)
    net.eval()
    return net


def accuracy(net: nn.Module, data: Digits) -> float:
    """The share of images whose digit is found."""
    with torch.no_grad():
        found = net(data.images).argmax(1)
    return float((found == data.labels).float().mean())


def folded(module: nn.Module) -> nn.Module:
    """The network with every normalisation taken into its convolution."""
    for name, child in module.named_children():
        if isinstance(child, Unit):
            fused = fuse_conv_bn_eval(child[0], child[1])
            setattr(module, name, nn.Sequential(fused, *list(child)[2:]))
        else:
            folded(child)
    return module


def write_model(net: nn.Module, out: Path) -> None:
    """The network as ONNX and, from that, as Core IR."""
    from nacre.core.onnx.importer import from_onnx
    from nacre.core.storage import save

    path = out / "digits.onnx"
    example = (torch.zeros(1, 1, SIDE, SIDE),)
    torch.onnx.export(
        net, example, str(path), dynamo=False, input_names=["image"], output_names=["chances"]
    )
    save(from_onnx(path), out / "digits.core")


def write_arrays(path: Path, arrays: dict[str, Array]) -> None:
    """An .npz file without the time of day in it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.save(data, array)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), data.getvalue(), zipfile.ZIP_DEFLATED)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Train the model of `nacre demo`.")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # sums in one order, whatever the machine
    training, held_back = digits()
    net = trained(training, given.epochs)
    parameters = sum(p.numel() for p in net.parameters())
    plain = folded(net)
    found = accuracy(plain, held_back)
    print(f"{parameters:,} parameters; {100 * found:.2f} % of {HELD_BACK} held-back digits found")
    given.out.mkdir(parents=True, exist_ok=True)
    write_model(plain, given.out)
    write_arrays(
        given.out / "calibration.npz", {"image": training.images[:CALIBRATION, None].numpy()}
    )
    tried = held_back.some(np.arange(SAMPLES))
    named = {"image": tried.images[:, None].numpy(), "label": tried.labels.numpy()}
    write_arrays(given.out / "samples.npz", named)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
