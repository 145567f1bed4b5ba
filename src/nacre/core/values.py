"""What an operation's attributes hold: words, strings, numbers, lists and tensor literals."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from math import nan
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Word(str):
    """A bare word, such as `Add` or `f32`: text without quotes."""

    __slots__ = ()


@lru_cache(maxsize=256)
def word(text: str) -> Word:
    """A word of which there are few: one for all that hold it."""
    return Word(text)


class Custom(tuple[tuple[int, int], ...]):
    """`Custom([[top, bottom], [left, right]])`: pads of a convolution."""

    __slots__ = ()


class Literal:
    """A tensor's elements, equal to others when their bytes are: -0.0 is not 0.0, NaN is NaN."""

    __slots__ = ("__dict__", "_array")

    def __init__(self, array: Array) -> None:
        # `ascontiguousarray` would give a scalar an axis; the view leaves the caller's flags alone.
        kept = _canonical_nan(np.asarray(array, order="C"))
        if kept.flags.writeable:
            kept = kept.view()
            kept.flags.writeable = False
        self._array = kept

    @property
    def array(self) -> Array:
        """The elements, in row-major order."""
        array = self._array
        if not array.flags.c_contiguous:
            self._array = array = _dense(array)
        return array

    def array_in_order(self, axes: tuple[int, ...]) -> Array:
        """The elements with their axes in another order, dense.

        From now on the literal is a view of these: weights are in memory once, not twice, while a
        session computes with them.
        """
        dense = _dense(self._array.transpose(axes))
        self._array = dense.transpose(sorted(range(len(axes)), key=axes.__getitem__))
        return dense

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self._array.shape

    @cached_property
    def _key(self) -> tuple[str, tuple[int, ...], bytes]:
        return str(self.dtype), self.shape, self._array.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and (self is other or self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return Literal, (self.array,)  # a copy cannot be written to either

    def __repr__(self) -> str:
        return f"Literal({self.dtype}{list(self.shape)})"


def _dense(array: Array) -> Array:
    copy = np.ascontiguousarray(array)
    copy.flags.writeable = False
    return copy


def _canonical_nan(array: Array) -> Array:
    """All NaN with the same bits: the text form has one word for them."""
    if array.dtype.kind in "iub" or array.dtype.name in ("int4", "uint4"):
        return array
    with np.errstate(invalid="ignore"):  # of NaN that signal
        unknown = np.isnan(array)
        if not unknown.any():
            return array
        return np.where(unknown, array.dtype.type(np.nan), array)


class Attributes(dict[str, Any]):
    """The attributes of an operation: a dictionary that cannot be changed and can be a key."""

    __slots__ = ("_hash",)

    def __hash__(self) -> int:  # type: ignore[override]
        found: int | None = getattr(self, "_hash", None)
        if found is None:
            found = self._hash = hash(frozenset(self.items()))
        return found

    def _refuse(self, *args: object, **others: object) -> NoReturn:
        raise TypeError("attributes cannot be changed; make an operation with others")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _refuse
    __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return attributes, (dict(self),)


NO_ATTRIBUTES = Attributes()


def attributes(given: Mapping[str, Any]) -> Attributes:
    """Attributes with lists as tuples and arrays as literals, sorted by name."""
    return (
        Attributes({key: hashable(given[key]) for key in sorted(given)}) if given else NO_ATTRIBUTES
    )


def hashable(value: Any) -> Any:  # noqa: ANN401 - whatever an attribute holds
    """A value that can be a key."""
    if isinstance(value, np.ndarray):
        return Literal(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value != value:
        return nan  # one for all: attributes that hold the same object are equal
    if isinstance(value, list | tuple) and not isinstance(value, Custom):
        return tuple(hashable(item) for item in value)
    return value


def array_or_none(value: object) -> Array | None:
    """What was given as an array; None where it is none."""
    if isinstance(value, np.ma.MaskedArray):
        return None  # what is masked has no value
    try:
        return np.asarray(value)
    except (ValueError, TypeError, RuntimeError):  # ragged lists, tensors that refuse
        return None


def kind_of(value: object) -> str:
    """What an argument is, for a message about its Python type."""
    return "None" if value is None else f"of type {type(value).__name__}"
