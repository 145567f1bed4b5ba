"""Arrays that follow from others: a bundle stores each once.

Constants of the legal module are mostly those of the model, transposed and rounded; the weights in
DDR are constants of the legal module, cut into blocks. Neither is stored where that holds to the
bit; what does not follow is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.base.packing import pack_nibbles
from nacre.compile.bundle.manifest import StoredWeights, WeightsSegment
from nacre.compile.placement.stage import WeightsPart
from nacre.core.module import Module, TensorType
from nacre.core.storage import Reference, StoredConstants
from nacre.core.tensor_file import derive_array, may_derive
from nacre.core.values import Array, Literal

_MOST_PERMUTED = 4  # axes that are tried in every order
_SAMPLES = 64
_MOST_GROWTH = 8  # how much larger weights may be than the constants that they follow from


def derived_constants(
    constants: StoredConstants, others: Mapping[str, tuple[str, Array]], file: str
) -> dict[str, Reference]:
    """The constants that follow from tensors of a file, by key."""
    references: dict[str, Reference] = {}
    sums = _TensorsBySum(others)
    for key, (dtype, array) in constants.tensors.items():
        type_ = TensorType(dtype, array.shape)
        if type_.element.bits < 8:  # packed: only the same elements in the same order are the same
            found = _same_tensor(others, dtype, array)
            references |= {} if found is None else {key: Reference(file, found)}
            continue
        for other in sums.candidates(dtype, array):
            axes = _axes(others[other][1], array, type_)
            if axes is not None:
                references[key] = Reference(file, other, axes)
                break
    return references


def _same_tensor(tensors: Mapping[str, tuple[str, Array]], dtype: str, array: Array) -> str | None:
    """The key of a tensor with the same elements."""
    for key, (other, tensor) in tensors.items():
        if other == dtype and np.array_equal(tensor.reshape(-1), array.reshape(-1)):
            return key
    return None


class _TensorsBySum:
    """Tensors by the sum of their bits in a type: whatever the order of its elements, it stays."""

    def __init__(self, tensors: Mapping[str, tuple[str, Array]]) -> None:
        self._tensors = tensors
        self._keys: dict[tuple[str, int], dict[int, list[str]]] = {}

    def candidates(self, dtype: str, array: Array) -> list[str]:
        place = (dtype, int(array.size))
        if place not in self._keys:
            self._keys[place] = {}
            for key, (other, tensor) in self._tensors.items():
                if tensor.size == array.size and may_derive(dtype, other):
                    with np.errstate(all="ignore"):
                        cast = tensor.astype(GRAPH_TYPES[dtype].dtype, copy=False)
                    self._keys[place].setdefault(_sum(cast), []).append(key)
        return self._keys[place].get(_sum(array), [])


def _bits(array: Array) -> Array:
    return array.view(f"u{array.dtype.itemsize}")


def _sum(array: Array) -> int:
    return int(_bits(array).sum(dtype=np.uint64))


def _axes(source: Array, wanted: Array, type_: TensorType) -> tuple[int, ...] | None:
    """The order of axes in which a tensor has the elements of another, one behind the other."""
    flat = _bits(wanted).reshape(-1)
    at = np.unique(np.linspace(0, flat.size - 1, _SAMPLES).astype(np.int64))
    for axes in _orders(source.shape):
        turned = source.transpose(axes)
        with np.errstate(all="ignore"):
            some = turned[np.unravel_index(at, turned.shape)].astype(wanted.dtype)
        if not np.array_equal(_bits(some), flat[at]):
            continue
        if np.array_equal(_bits(derive_array(source, axes, type_)).reshape(-1), flat):
            return axes
    return None


def _orders(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Orders of axes that may differ; those of size 1 stand behind."""
    wide = [axis for axis, size in enumerate(shape) if size != 1]
    unit = tuple(axis for axis, size in enumerate(shape) if size == 1)
    if len(wide) > _MOST_PERMUTED:
        yield (*wide, *unit)
        yield (*reversed(wide), *unit)
        return
    for order in permutations(wide):
        yield (*order, *unit)


# Weights


class Constant(NamedTuple):
    """The elements of a constant, of which those of 4 bits lie two to a byte in memory."""

    array: Array
    is_packed: bool = False

    def bytes(self, array: Array) -> int:
        """What some of its elements take."""
        return -(-array.size // 2) if self.is_packed else array.nbytes


def constants_of(module: Module) -> dict[int, Constant]:
    """The elements of a module's constants, by value."""
    data = ((op, op.attributes.get("data")) for op in module.operations)
    return {
        op.value_id: Constant(found.array, op.type.element.bits < 8)
        for op, found in data
        if isinstance(found, Literal)
    }


def stored_weights(
    weights: bytes, parts: Iterable[WeightsPart], constants: Mapping[int, Constant]
) -> tuple[StoredWeights, dict[int, bytes]]:
    """How weights follow from constants, and what of them does not, by its offset."""
    segments = tuple(_segments(parts, constants))
    if len(weights) <= _MOST_GROWTH * _bytes_of(constants):
        stored = StoredWeights(len(weights), segments)
        try:
            whole = restore_weights(
                stored, _uncovered_bytes(weights, segments, constants), constants
            )
        except ValueError:
            whole = b"", ()
        if whole[0] == weights:
            return stored, _uncovered_bytes(weights, segments, constants)
    return StoredWeights(len(weights)), {0: weights} if weights else {}


def _segments(
    parts: Iterable[WeightsPart], constants: Mapping[int, Constant]
) -> Iterator[WeightsSegment]:
    """Parts that are views of constants: an address says where in which one they begin."""
    begins = sorted((_address(c.array), value) for value, c in constants.items() if c.array.size)
    starts = [address for address, _ in begins]
    for offset, array, elem in parts:
        index = bisect_right(starts, _address(array)) - 1
        if index < 0 or not array.size:
            continue
        address, value = begins[index]
        constant, is_packed = constants[value]
        start, odd = divmod(_address(array) - address, constant.itemsize)
        steps = [(n, s) for n, s in zip(array.shape, array.strides, strict=True) if n > 1]
        if is_packed != bool(elem) or odd or array.dtype != constant.dtype:
            continue
        if any(s % array.itemsize for _, s in steps):
            continue
        shape = tuple(n for n, _ in steps)
        strides = tuple(s // array.itemsize for _, s in steps)
        segment = WeightsSegment(offset, value, start, shape, strides)
        if _is_inside(segment, constant):
            yield segment


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _is_inside(segment: WeightsSegment, constant: Array) -> bool:
    """Whether a segment has elements of a constant, each at most once."""
    if len(segment.shape) != len(segment.strides) or segment.start < 0:
        return False
    reach = 1
    for stride, size in sorted(zip(segment.strides, segment.shape, strict=True)):
        if size < 2 or stride < reach:
            return False
        reach += stride * (size - 1)
    return segment.start + reach <= constant.size


def _uncovered_bytes(
    weights: bytes, segments: Iterable[WeightsSegment], constants: Mapping[int, Constant]
) -> dict[int, bytes]:
    """What no segment covers, by its offset; zeros are left out."""
    uncovered: dict[int, bytes] = {}
    end = 0
    for first, behind in (*sorted(_extent(s, constants) for s in segments), (len(weights),) * 2):
        between = weights[end:first]
        if between.strip(b"\0"):
            uncovered[end] = between
        end = max(end, behind)
    return uncovered


def _extent(segment: WeightsSegment, constants: Mapping[int, Constant]) -> tuple[int, int]:
    constant = constants[segment.value]
    size = constant.bytes(_view(segment, constant.array))
    return segment.offset, segment.offset + size


def _bytes_of(constants: Mapping[int, Constant]) -> int:
    return sum(constant.bytes(constant.array) for constant in constants.values())


def restore_weights(
    stored: StoredWeights, rest: Mapping[int, bytes], constants: Mapping[int, Constant]
) -> tuple[bytes, tuple[WeightsPart, ...]]:
    """The weights, and the arrays that they are made of; ValueError where they do not fit."""
    most = _MOST_GROWTH * _bytes_of(constants) + sum(map(len, rest.values()))
    if not 0 <= stored.size <= most:
        raise ValueError(
            f"gives the weights {stored.size:,} bytes, constants make {most:,} at most"
        )
    weights = bytearray(stored.size)
    parts: list[WeightsPart] = []
    for segment in stored.segments:
        constant = constants.get(segment.value)
        if constant is None or not _is_inside(segment, constant.array):
            raise ValueError(f"takes weights from %{segment.value}, which does not have them")
        part, is_packed = _view(segment, constant.array), constant.is_packed
        raw = pack_nibbles(part).tobytes() if is_packed else part.tobytes()
        _write_bytes(weights, segment.offset, raw)
        parts.append(WeightsPart(segment.offset, part, "i4" if is_packed else ""))
    for offset, raw in rest.items():
        _write_bytes(weights, offset, raw)
    return bytes(weights), tuple(parts)


def _view(segment: WeightsSegment, constant: Array) -> np.ndarray[Any, Any]:
    flat = constant.reshape(-1)[segment.start :]
    strides = tuple(stride * constant.itemsize for stride in segment.strides)
    return np.lib.stride_tricks.as_strided(flat, segment.shape, strides, writeable=False)


def _write_bytes(weights: bytearray, offset: int, raw: bytes) -> None:
    if not 0 <= offset <= len(weights) - len(raw):
        raise ValueError(f"puts {len(raw):,} bytes of weights at {offset}, which is outside")
    weights[offset : offset + len(raw)] = raw
