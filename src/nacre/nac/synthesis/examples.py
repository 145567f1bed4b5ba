"""Small data to train with: digits that come along, figures that are drawn, arrays of a user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.source import whole_file
from nacre.core.values import Array
from nacre.nac.rules.synthesis import NAC59

_SPLIT_SEED = 1
_TESTED_SHARE = 4  # one of so many examples is not trained on
_LEAST_EXAMPLES, MOST_CLASSES = 16, 1000
_FIGURES, _SIDE, _NOISE = 1200, 10, 0.25


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs with the numbers of their classes, some to train with and some to test with."""

    name: str
    train: tuple[Array, Array]
    test: tuple[Array, Array]
    classes: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one example as a network takes it."""
        return (1, *self.train[0].shape[1:])


def examples_of(arrays: Mapping[str, Array], name: str = "<data>") -> Examples:
    """Examples from `images` and `labels`; InputError has all that is wrong with them.

    Images are [N, H, W] or [N, C, H, W], sequences [N, T, C] under `inputs`, vectors [N, C].
    """
    problems = list(_problems(arrays))
    if problems:
        help_ = "arrays `images` [N, H, W] or [N, C, H, W], or `inputs`, and `labels` [N]"
        found = [NAC59.at(whole_file(name), text, help=help_) for text in problems]
        raise InputError(found)
    inputs = arrays["images"] if "images" in arrays else arrays["inputs"]
    if "images" in arrays and inputs.ndim == 3:
        inputs = inputs[:, None]
    return split_examples(name, inputs, arrays["labels"])


def _problems(arrays: Mapping[str, Array]) -> list[str]:
    if "images" in arrays and "inputs" in arrays:  # which of them is meant only the user knows
        return ["found `images` and `inputs`, expected one of them"]
    inputs, labels = arrays.get("images", arrays.get("inputs")), arrays.get("labels")
    if inputs is None or labels is None:
        return [f"found arrays {', '.join(sorted(arrays)) or 'none'}, expected images and labels"]
    found = []
    if inputs.dtype.kind not in "fiu" or not 2 <= inputs.ndim <= 4 or 0 in inputs.shape:
        found.append(f"the inputs are {inputs.dtype}{list(inputs.shape)}, expected numbers")
    elif not np.isfinite(inputs).all():
        found.append("some inputs are not finite")
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        return [*found, f"the labels are {labels.dtype}{list(labels.shape)}, expected integers [N]"]
    if len(labels) != len(inputs) or len(labels) < _LEAST_EXAMPLES:
        found.append(f"{len(inputs)} inputs and {len(labels)} labels, expected {_LEAST_EXAMPLES}"
                     " or more, as many of both")  # fmt: skip
    elif int(labels.min()) < 0 or int(labels.max()) >= MOST_CLASSES:
        least, most = int(labels.min()), int(labels.max())
        found.append(f"labels from {least} to {most}, expected 0 to {MOST_CLASSES - 1}")
    return found


def split_examples(name: str, inputs: Array, labels: Array) -> Examples:
    """Inputs brought to mean 0 and variance 1, in an order that does not depend on the machine."""
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(labels))
    real = inputs[order].astype(np.float64)
    scaled = ((real - real.mean()) / (real.std() or 1.0)).astype(np.float32)
    classes = labels[order].astype(np.int64)
    tested = len(labels) // _TESTED_SHARE
    return Examples(
        name,
        (scaled[tested:], classes[tested:]),
        (scaled[:tested], classes[:tested]),
        int(classes.max()) + 1,
    )


@lru_cache(maxsize=1)
def digits() -> Examples:
    """The 1,797 digits that come along, see `data/README.md`."""
    place = files("nacre.nac.synthesis") / "data" / "digits.npz"
    with place.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return split_examples("digits", arrays["images"][:, None], arrays["labels"])


@lru_cache(maxsize=1)
def figures() -> Examples:
    """Bars, crosses, squares and diagonals of any size and place, under noise."""
    random = np.random.default_rng(7)
    labels = np.arange(_FIGURES) % len(_DRAWN)
    images = np.zeros((_FIGURES, 1, _SIDE, _SIDE))
    for image, label in zip(images[:, 0], labels, strict=True):
        size = int(random.integers(4, _SIDE - 1))
        top, left = random.integers(0, _SIDE - size + 1, 2)
        part = image[top : top + size, left : left + size]
        rows, columns = np.indices((size, size))
        part[_DRAWN[label](rows, columns, size)] = random.uniform(0.6, 1.0)
        image += random.normal(0.0, _NOISE, image.shape)
    return split_examples("figures", images, labels)


# Which places of a square of a size are drawn, by their rows and columns.
_DRAWN: tuple[Callable[[Array, Array, int], Array], ...] = (
    lambda y, x, n: y == n // 2,
    lambda y, x, n: x == n // 2,
    lambda y, x, n: (y == n // 2) | (x == n // 2),
    lambda y, x, n: (y == 0) | (x == 0) | (y == n - 1) | (x == n - 1),
    lambda y, x, n: y == x,
    lambda y, x, n: y + x == n - 1,
    lambda y, x, n: (y == x) | (y + x == n - 1),
)

EXAMPLES: Mapping[str, Callable[[], Examples]] = MappingProxyType(
    {"digits": digits, "figures": figures}
)
