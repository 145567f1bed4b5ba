"""Small float modules in the legal set, channels last, as the legaliser leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.compile.legalise.legal_module import Legal
from nacre.compile.quantise.quantiser import Quantised
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Labels, Module

Array = npt.NDArray[Any]
Sample = dict[str, Array]


def numbers(seed: int, *shape: int, spread: float = 1.0) -> Array:
    """Numbers around 0."""
    made: Array = (np.random.default_rng(seed).standard_normal(shape) * spread).astype(np.float32)
    return made


def legal(module: Module) -> Legal:
    """A module that is legal as it stands; every value comes from itself."""
    return Legal(
        module, {op.value_id: (op.value_id,) for op in module.operations}, len(module.outputs)
    )


def convolution(
    builder: Builder, x: int, cout: int, seed: int, *, window: int = 3, depthwise: bool = False,
    spread: float = 1.0,
) -> int:  # fmt: skip
    """A convolution that keeps the plane and about keeps the size of elements."""
    cin = builder.type_of(x).shape[-1]
    groups = cin if depthwise else 1
    shape = (window, window, cin // groups, cout)
    weights = numbers(seed, *shape, spread=spread / float(np.prod(shape[:3])) ** 0.5)
    half = window // 2
    return builder.add(
        "Conv", x, builder.constant(weights), builder.constant(numbers(seed + 1, cout, spread=0.1)),
        layout="NHWC", pads=(half,) * 4, groups=groups,
    )  # fmt: skip


def mobile(seed: int = 0, size: int = 16, blocks: int = 4) -> Module:
    """Inverted residuals: 1x1 up, 3x3 for each channel, 1x1 down, added."""
    builder = Builder()
    x = builder.input("image", "f32", (1, size, size, 3))
    x = builder.add("Clip", convolution(builder, x, 8, seed), min=0.0, max=6.0)
    for block in range(blocks):
        at = seed + 10 * block
        y = builder.add("Clip", convolution(builder, x, 32, at, window=1), min=0.0, max=6.0)
        y = convolution(builder, y, 32, at + 3, depthwise=True)
        y = builder.add("Clip", y, min=0.0, max=6.0)
        y = convolution(builder, y, 8, at + 6, window=1)
        x = builder.add("BinOp", x, y, op="Add")
    pooled = builder.add("AvgPool", x, layout="NHWC", kernel=(size, size))
    rows = builder.add("Reshape", pooled, new_shape=(1, 8))
    made = builder.add("Linear", rows, builder.constant(numbers(seed + 99, 5, 8)))
    return named(builder.module(made))


def named(module: Module) -> Module:
    """The same with names for its operations, as an importer gives them."""
    nodes = {
        op.value_id: f"{op.opcode.lower()}_{op.value_id}"
        for op in module.operations
        if not op.opcode.startswith(("Const", "Input"))
    }
    return Module(module.operations, module.outputs, module.states, labels=Labels(("y",), nodes))


def samples(module: Module, count: int, seed: int = 50) -> list[Sample]:
    """Smooth inputs with some noise."""
    return [
        {
            name: _smooth(np.random.default_rng(seed + index), type_.shape)
            for name, type_ in module.input_types.items()
        }
        for index in range(count)
    ]


def _smooth(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    base = random.standard_normal(shape)
    for axis in range(1, len(shape) - 1):
        base = base + np.roll(base, 1, axis) + np.roll(base, 2, axis)
    return (base / max(1.0, float(np.abs(base).max())) * 2.0).astype(np.float32)


def stored_run(quantised: Quantised, sample: Sample) -> list[Array]:
    """The outputs of the module on integers, as reals: the host's part by hand."""
    stored = {port.name: port.to_memory(sample[port.name]) for port in quantised.inputs}
    found = evaluate(quantised.legal.module, stored)
    return [port.real(array) for port, array in zip(quantised.outputs, found, strict=True)]


def sqnr(expected: Array | Sequence[Array], found: Array | Sequence[Array]) -> float:
    """Signal over noise in dB."""
    a, b = (np.concatenate([np.ravel(x) for x in arrays]).astype(np.float64)
            for arrays in (_listed(expected), _listed(found)))  # fmt: skip
    noise = float(((a - b) ** 2).sum())
    return float("inf") if noise == 0 else 10 * float(np.log10((a**2).sum() / noise))


def _listed(arrays: Array | Sequence[Array]) -> Sequence[Array]:
    return [arrays] if isinstance(arrays, np.ndarray) else arrays
