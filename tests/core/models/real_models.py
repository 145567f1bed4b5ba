"""The real models as tests and benchmarks run them: shapes, what is bound, inputs.

Noise leaves detectors and readers of text cold, so pictures have strokes on paper, and sound has
a voice in it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.core.module import Module
from nacre.core.onnx.importer import from_onnx
from tools.fetch_models import model_path

Array = npt.NDArray[Any]
Feeds = dict[str, Array]
Make = Callable[[np.random.Generator, tuple[int, ...]], Array]

_RATE = np.array(16000, np.int64)


def picture(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Dark strokes in rows on light paper, from -1 to 1, as [N, C, H, W]."""
    height, width = shape[2:]
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    paper = 0.8 + 0.1 * np.sin(x / width * 5) * np.cos(y / height * 3)
    for top in range(height // 8, height - height // 6, max(height // 4, 24)):
        for left in range(8, width - 16, 14):
            slope, curl = random.uniform(-0.6, 0.6), random.uniform(2, 6)
            path = left + slope * (y - top) + curl * np.sin((y - top) / 4)
            inside = (np.abs(x - path) < 1.6) & (y > top) & (y < top + 22)
            paper[inside] = -0.9
    whole = np.broadcast_to(paper, shape) + random.normal(0, 0.02, shape)
    return whole.astype(np.float32)


def sound(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A vowel: harmonics under a slow swell, and some noise."""
    time = np.arange(int(np.prod(shape))) / 16000
    swell = 0.5 + 0.5 * np.sin(2 * np.pi * 3 * time)
    voice = sum(np.sin(2 * np.pi * 140 * k * time) / k for k in range(1, 20))
    noise = random.normal(0, 0.01, time.size)
    return (0.2 * swell * voice + noise).reshape(shape).astype(np.float32)


def text(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Bytes of source code, over and over."""
    line = b"def area(width, height):\n    return width * height  # in pixels\n\n"
    return np.resize(np.frombuffer(line, np.uint8), shape).astype(np.int32)


def silence(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Zeros: what a state starts from."""
    return np.zeros(shape, np.float32)


@dataclass(frozen=True)
class RealModel:
    """A model in ONNX: the shapes that it runs at, what is bound for good, how inputs are made."""

    name: str
    inputs: Mapping[str, tuple[tuple[int, ...], Make]]
    most: float  # the error that is allowed, as a share of the largest absolute output
    constants: Mapping[str, Array] = field(default_factory=dict)
    is_large: bool = False  # to download, or to run
    is_cnn: bool = False  # most of its time goes into convolutions of f32
    is_recurrent: bool = False  # it has an LSTM

    @property
    def path(self) -> Path:
        """Its file; Unavailable where it cannot be had."""
        return model_path(self.name)

    def module(self) -> Module:
        """As `nacre-1`, not optimised."""
        shapes = {name: shape for name, (shape, _) in self.inputs.items()}
        return from_onnx(self.path, shapes, constants=self.constants)

    def feeds(self) -> Feeds:
        """The same inputs in every run, without what is bound."""
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        return {name: make(random, shape) for name, (shape, make) in self.inputs.items()}


def _model(name: str, most: float, *, bound: Mapping[str, Array] | None = None,
           is_large: bool = False, is_cnn: bool = False, is_recurrent: bool = False,
           **inputs: tuple[tuple[int, ...], Make]) -> RealModel:  # fmt: skip
    taken = MappingProxyType(inputs)
    return RealModel(name, taken, most, bound or {}, is_large, is_cnn, is_recurrent)


# About three times the error that was measured against onnxruntime, for other machines add up in
# other orders. The last model rounds to 8 bits wherever it goes: sums that differ in their last bit
# round to different steps, and a step is 1 / 255 of the range.
REAL_MODELS: tuple[RealModel, ...] = (
    _model("silero-sequence", 6e-6, is_recurrent=True, input=((31, 576), sound),
           h=((1, 1, 128), silence), c=((1, 1, 128), silence)),
    _model("silero-ifless", 6e-6, bound={"sr": _RATE}, is_recurrent=True, input=((1, 576), sound),
           state=((2, 1, 128), silence)),
    _model("ppocr-cls", 5e-7, is_cnn=True, x=((1, 3, 48, 192), picture)),
    _model("ppocr-det", 6e-5, is_cnn=True, x=((1, 3, 320, 320), picture)),
    _model("ppocr-rec", 3e-5, is_cnn=True, x=((1, 3, 48, 320), picture)),
    _model("nudenet", 2e-6, is_cnn=True, images=((1, 3, 320, 320), picture)),
    _model("magika", 1e-6, bytes=((1, 2048), text)),
    _model("ddddocr", 2e-6, is_large=True, is_cnn=True, is_recurrent=True,
           input1=((1, 1, 64, 160), picture)),
    _model("ddddocr-int8", 2e-2, is_large=True, is_recurrent=True,
           input1=((1, 1, 64, 160), picture)),
)  # fmt: skip
