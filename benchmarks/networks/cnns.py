"""Twenty convolutional networks as modules of PyTorch: random weights, sizes that are in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

Made = tuple[Any, tuple[Any, ...]]  # a module of PyTorch and what it is given
Layers = list[Any]


def convolved(
    inputs: int, outputs: int, window: int = 3, stride: int = 1, *, groups: int = 1,
    act: Callable[[], Any] | None = nn.ReLU,
) -> Layers:  # fmt: skip
    """A convolution with its norm, and what follows it."""
    conv = nn.Conv2d(inputs, outputs, window, stride, window // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs), *([] if act is None else [act()])]


def classified(width: int, classes: int = 1000) -> Layers:
    """From planes to classes."""
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes)]


def picture(size: int, channels: int = 3) -> tuple[Any, ...]:
    return (torch.randn(1, channels, size, size),)


class Added(nn.Module):  # type: ignore[misc]
    """Layers beside a shortcut, added up."""

    def __init__(self, body: Layers, shortcut: Layers, act: Any = None) -> None:  # noqa: ANN401
        super().__init__()
        self.body, self.shortcut = nn.Sequential(*body), nn.Sequential(*shortcut)
        self.act = nn.Identity() if act is None else act

    def forward(self, x: Any) -> Any:  # noqa: ANN401, D102
        return self.act(self.body(x) + self.shortcut(x))


class Joined(nn.Module):  # type: ignore[misc]
    """Branches side by side, their channels one behind the other."""

    def __init__(self, *branches: Layers) -> None:
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(*branch) for branch in branches)

    def forward(self, x: Any) -> Any:  # noqa: ANN401, D102
        return torch.cat([branch(x) for branch in self.branches], 1)


class Squeezed(nn.Module):  # type: ignore[misc]
    """Channels weighed by what they are on the whole."""

    def __init__(self, width: int, inner: int, act: Any, gate: Any) -> None:  # noqa: ANN401
        super().__init__()
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, inner, 1), act,
                                  nn.Conv2d(inner, width, 1), gate)  # fmt: skip

    def forward(self, x: Any) -> Any:  # noqa: ANN401, D102
        return x * self.gate(x)


def small() -> Made:
    """As in the fixtures: two convolutions with norms, a pooling, a classifier."""
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), *classified(32, 10),
    )  # fmt: skip
    return net, picture(32)


def lenet() -> Made:
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84),
        nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    return net, picture(28, 1)


def keyword() -> Made:
    """DS-CNN of MLPerf Tiny: depthwise convolutions over 49 x 10 features of a second of sound."""
    layers: Layers = [nn.Conv2d(1, 64, (10, 4), 2, (5, 1)), nn.BatchNorm2d(64), nn.ReLU()]
    for _ in range(4):
        layers += [*convolved(64, 64, groups=64), *convolved(64, 64, 1)]
    return nn.Sequential(*layers, *classified(64, 12)), (torch.randn(1, 1, 49, 10),)


def _residual(inputs: int, outputs: int, stride: int) -> Any:  # noqa: ANN401
    body = [*convolved(inputs, outputs, 3, stride), *convolved(outputs, outputs, act=None)]
    is_same = stride == 1 and inputs == outputs
    shortcut = [] if is_same else convolved(inputs, outputs, 1, stride, act=None)
    return Added(body, shortcut, nn.ReLU())


def _stages(width: int, stages: list[tuple[int, int, int]], block: Callable[..., Any]) -> Layers:
    layers: Layers = []
    for outputs, count, stride in stages:
        for at in range(count):
            layers.append(block(width, outputs, stride if at == 0 else 1))
            width = outputs
    return layers


def resnet20() -> Made:
    """For CIFAR."""
    blocks = _stages(16, [(16, 3, 1), (32, 3, 2), (64, 3, 2)], _residual)
    return nn.Sequential(*convolved(3, 16), *blocks, *classified(64, 10)), picture(32)


def _stem() -> Layers:
    return [*convolved(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]


def resnet18() -> Made:
    blocks = _stages(64, [(64, 2, 1), (128, 2, 2), (256, 2, 2), (512, 2, 2)], _residual)
    return nn.Sequential(*_stem(), *blocks, *classified(512)), picture(224)


def _bottlenecks(groups: int, inner_of: Callable[[int], int]) -> Callable[..., Any]:
    def block(inputs: int, outputs: int, stride: int) -> Any:  # noqa: ANN401
        inner = inner_of(outputs)
        body = [*convolved(inputs, inner, 1), *convolved(inner, inner, 3, stride, groups=groups),
                *convolved(inner, outputs, 1, act=None)]  # fmt: skip
        is_same = stride == 1 and inputs == outputs
        shortcut = [] if is_same else convolved(inputs, outputs, 1, stride, act=None)
        return Added(body, shortcut, nn.ReLU())

    return block


_DEEP = [(256, 3, 1), (512, 4, 2), (1024, 6, 2), (2048, 3, 2)]


def resnet50() -> Made:
    blocks = _stages(64, _DEEP, _bottlenecks(1, lambda outputs: outputs // 4))
    return nn.Sequential(*_stem(), *blocks, *classified(2048)), picture(224)


def resnext50() -> Made:
    """32 groups of 4 channels and more."""
    blocks = _stages(64, _DEEP, _bottlenecks(32, lambda outputs: outputs // 2))
    return nn.Sequential(*_stem(), *blocks, *classified(2048)), picture(224)


def regnet() -> Made:
    """RegNetX-400MF: groups of 16 channels."""

    def block(inputs: int, outputs: int, stride: int) -> Any:  # noqa: ANN401
        return _bottlenecks(outputs // 16, lambda width: width)(inputs, outputs, stride)

    blocks = _stages(32, [(32, 1, 2), (64, 2, 2), (160, 7, 2), (400, 12, 2)], block)
    return nn.Sequential(*convolved(3, 32, 3, 2), *blocks, *classified(400)), picture(224)


def mobilenet_v1() -> Made:
    layers, width = convolved(3, 32, 3, 2), 32
    for outputs, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
                            *[(512, 1)] * 5, (1024, 2), (1024, 1)]:  # fmt: skip
        layers += [*convolved(width, width, 3, stride, groups=width), *convolved(width, outputs, 1)]
        width = outputs
    return nn.Sequential(*layers, *classified(1024)), picture(224)


def _inverted(
    inputs: int, outputs: int, stride: int, inner: int, window: int = 3, *,
    act: Callable[[], Any] = nn.ReLU6, squeezed: Layers | None = None,
) -> Any:  # fmt: skip # noqa: ANN401
    """Wider, one channel at a time, narrower; added to what came in."""
    wider = convolved(inputs, inner, 1, act=act) if inner != inputs else []
    body = [*wider, *convolved(inner, inner, window, stride, groups=inner, act=act),
            *(squeezed or []), *convolved(inner, outputs, 1, act=None)]  # fmt: skip
    return Added(body, []) if stride == 1 and inputs == outputs else nn.Sequential(*body)


def mobilenet_v2() -> Made:
    layers, width = convolved(3, 32, 3, 2, act=nn.ReLU6), 32
    for factor, outputs, count, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2),
                                           (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                           (6, 320, 1, 1)]:  # fmt: skip
        for at in range(count):
            layers.append(_inverted(width, outputs, stride if at == 0 else 1, width * factor))
            width = outputs
    layers += [*convolved(width, 1280, 1, act=nn.ReLU6), *classified(1280)]
    return nn.Sequential(*layers), picture(224)


def mobilenet_v3() -> Made:
    """The small one: squeezed channels, HardSwish."""
    # Inner width, outputs, window, whether channels are squeezed, whether it is HardSwish, stride.
    rows = [(16, 16, 3, 1, 0, 2), (72, 24, 3, 0, 0, 2), (88, 24, 3, 0, 0, 1), (96, 40, 5, 1, 1, 2),
            (240, 40, 5, 1, 1, 1), (240, 40, 5, 1, 1, 1), (120, 48, 5, 1, 1, 1),
            (144, 48, 5, 1, 1, 1), (288, 96, 5, 1, 1, 2), (576, 96, 5, 1, 1, 1),
            (576, 96, 5, 1, 1, 1)]  # fmt: skip
    layers, width = convolved(3, 16, 3, 2, act=nn.Hardswish), 16
    for inner, outputs, window, is_squeezed, is_hard, stride in rows:
        act = nn.Hardswish if is_hard else nn.ReLU
        gate = [Squeezed(inner, inner // 4, nn.ReLU(), nn.Hardsigmoid())] if is_squeezed else None
        layers.append(_inverted(width, outputs, stride, inner, window, act=act, squeezed=gate))
        width = outputs
    layers += [*convolved(96, 576, 1, act=nn.Hardswish), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
               nn.Linear(576, 1024), nn.Hardswish(), nn.Linear(1024, 1000)]  # fmt: skip
    return nn.Sequential(*layers), picture(224)


def efficientnet() -> Made:
    """B0: squeezed channels, SiLU, windows of 3 and 5."""
    layers, width = convolved(3, 32, 3, 2, act=nn.SiLU), 32
    for factor, outputs, count, stride, window in [
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
        (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
    ]:  # fmt: skip
        for at in range(count):
            inner = width * factor
            gate = [Squeezed(inner, width // 4, nn.SiLU(), nn.Sigmoid())]
            once = stride if at == 0 else 1
            layers.append(_inverted(width, outputs, once, inner, window, act=nn.SiLU,
                                    squeezed=gate))  # fmt: skip
            width = outputs
    layers += [*convolved(width, 1280, 1, act=nn.SiLU), *classified(1280)]
    return nn.Sequential(*layers), picture(224)


class Permuted(nn.Module):  # type: ignore[misc]
    """Axes in another order."""

    def __init__(self, *order: int) -> None:
        super().__init__()
        self.order = order

    def forward(self, x: Any) -> Any:  # noqa: ANN401, D102
        return x.permute(self.order)


def convnext() -> Made:
    """ConvNeXt-T: windows of 7 over single channels, norms, Gelu."""

    def block(inputs: int, outputs: int, stride: int) -> Any:  # noqa: ANN401
        if inputs != outputs or stride > 1:
            norm = [Permuted(0, 2, 3, 1), nn.LayerNorm(inputs), Permuted(0, 3, 1, 2)]
            cut = nn.Conv2d(inputs, outputs, 2, 2)
            return nn.Sequential(*norm, cut, block(outputs, outputs, 1))
        body = [nn.Conv2d(inputs, inputs, 7, padding=3, groups=inputs), Permuted(0, 2, 3, 1),
                nn.LayerNorm(inputs), nn.Linear(inputs, 4 * inputs), nn.GELU(),
                nn.Linear(4 * inputs, inputs), Permuted(0, 3, 1, 2)]  # fmt: skip
        return Added(body, [])

    blocks = _stages(96, [(96, 3, 1), (192, 3, 2), (384, 9, 2), (768, 3, 2)], block)
    stem = [nn.Conv2d(3, 96, 4, 4), Permuted(0, 2, 3, 1), nn.LayerNorm(96), Permuted(0, 3, 1, 2)]
    return nn.Sequential(*stem, *blocks, *classified(768)), picture(224)


def squeezenet() -> Made:
    """Its version 1.1."""

    def fire(inputs: int, inner: int, outputs: int) -> Layers:
        wide = [[nn.Conv2d(inner, outputs, k, padding=k // 2), nn.ReLU()] for k in (1, 3)]
        return [nn.Conv2d(inputs, inner, 1), nn.ReLU(), Joined(*wide)]

    net = nn.Sequential(
        nn.Conv2d(3, 64, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2), *fire(64, 16, 64),
        *fire(128, 16, 64), nn.MaxPool2d(3, 2), *fire(128, 32, 128), *fire(256, 32, 128),
        nn.MaxPool2d(3, 2), *fire(256, 48, 192), *fire(384, 48, 192), *fire(384, 64, 256),
        *fire(512, 64, 256), nn.Conv2d(512, 1000, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )  # fmt: skip
    return net, picture(224)


def alexnet() -> Made:
    net = nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(64, 192, 5, padding=2),
        nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(3, 2), nn.Flatten(), nn.Linear(9216, 4096), nn.ReLU(), nn.Linear(4096, 4096),
        nn.ReLU(), nn.Linear(4096, 1000),
    )  # fmt: skip
    return net, picture(224)


def vgg11() -> Made:
    layers, width = Layers(), 3
    for outputs, count in [(64, 1), (128, 1), (256, 2), (512, 2), (512, 2)]:
        for _ in range(count):
            layers += [nn.Conv2d(width, outputs, 3, padding=1), nn.ReLU()]
            width = outputs
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), nn.Linear(25088, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
               nn.Linear(4096, 1000)]  # fmt: skip
    return nn.Sequential(*layers), picture(224)


def inception() -> Made:
    """GoogLeNet with norms."""
    rows = [(64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), (0,),
            (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64),
            (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128), (0,),
            (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)]  # fmt: skip
    layers = [*_stem(), *convolved(64, 64, 1), *convolved(64, 192), nn.MaxPool2d(3, 2, 1)]
    width = 192
    for row in rows:
        if len(row) == 1:
            layers.append(nn.MaxPool2d(3, 2, 1))
            continue
        one, inner, three, narrow, five, pooled = row
        layers.append(Joined(
            convolved(width, one, 1), [*convolved(width, inner, 1), *convolved(inner, three)],
            [*convolved(width, narrow, 1), *convolved(narrow, five)],
            [nn.MaxPool2d(3, 1, 1), *convolved(width, pooled, 1)],
        ))  # fmt: skip
        width = one + three + five + pooled
    return nn.Sequential(*layers, *classified(width)), picture(224)


def densenet() -> Made:
    """DenseNet-121: norms before convolutions, channels that grow."""

    def grown(width: int) -> Any:  # noqa: ANN401
        body = [nn.BatchNorm2d(width), nn.ReLU(), *convolved(width, 128, 1),
                nn.Conv2d(128, 32, 3, padding=1, bias=False)]  # fmt: skip
        return Joined([], body)

    layers, width = _stem(), 64
    for at, count in enumerate((6, 12, 24, 16)):
        if at:
            layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width // 2, 1),
                       nn.AvgPool2d(2)]  # fmt: skip
            width //= 2
        for _ in range(count):
            layers.append(grown(width))
            width += 32
    layers += [nn.BatchNorm2d(width), nn.ReLU(), *classified(width)]
    return nn.Sequential(*layers), picture(224)


def shufflenet() -> Made:
    """ShuffleNetV2 x1: halves of channels that change places."""

    class Unit(nn.Module):  # type: ignore[misc]
        """One half as it is, or both convolved; then shuffled."""

        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.stride, half = stride, outputs // 2
            given = inputs if stride > 1 else half
            self.body = nn.Sequential(
                *convolved(given, half, 1),
                *convolved(half, half, 3, stride, groups=half, act=None),
                *convolved(half, half, 1),
            )  # fmt: skip
            self.other = nn.Sequential(
                *convolved(inputs, inputs, 3, stride, groups=inputs, act=None),
                *convolved(inputs, half, 1),
            ) if stride > 1 else nn.Identity()  # fmt: skip

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            a, b = (x, x) if self.stride > 1 else x.chunk(2, 1)
            y = torch.cat([self.other(a), self.body(b)], 1)
            n, c, h, w = y.shape
            return y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)

    blocks = _stages(24, [(116, 4, 2), (232, 8, 2), (464, 4, 2)], Unit)
    stem = [*convolved(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, *convolved(464, 1024, 1), *classified(1024)), picture(224)


def unet() -> Made:
    """Four floors of 16 to 128 channels, upwards by transposed convolutions."""

    def twice(inputs: int, outputs: int) -> Layers:
        return [*convolved(inputs, outputs), *convolved(outputs, outputs)]

    def floor(width: int, below: Layers) -> Layers:
        down = [nn.MaxPool2d(2), *below, nn.ConvTranspose2d(2 * width, width, 2, 2)]
        return [Joined([], down), *twice(2 * width, width)]

    inner = twice(64, 128)
    for width in (64, 32, 16):
        above = twice(width // 2 if width > 16 else 3, width)
        inner = [*above, *floor(width, inner)]
    return nn.Sequential(*inner, nn.Conv2d(16, 2, 1)), picture(256)


CNNS: Mapping[str, Callable[[], Made]] = {
    function.__name__: function
    for function in (
        small, lenet, keyword, resnet20, resnet18, resnet50, resnext50, regnet, mobilenet_v1,
        mobilenet_v2, mobilenet_v3, efficientnet, convnext, squeezenet, alexnet, vgg11, inception,
        densenet, shufflenet, unet,
    )
}  # fmt: skip
