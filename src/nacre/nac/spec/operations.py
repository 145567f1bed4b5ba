"""The standard operations: their ids, since which version, and the call of ATen that each is.

A standard operation takes the first arguments of its call; those left out have their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from msgspec import Struct


class Standard(Struct, frozen=True):
    """An operation with an id of its own."""

    id: int
    name: str
    call: str  # of ATen, `name.overload`
    since: int  # version byte


_ROWS = (
    Standard(10, "nac.pass", "nac.pass", 1),
    Standard(11, "nac.add", "add.Tensor", 1),
    Standard(12, "nac.sub", "sub.Tensor", 1),
    Standard(13, "nac.gt", "gt.Tensor", 1),
    Standard(14, "nac.neg", "neg.default", 1),
    Standard(15, "nac.where", "where.self", 1),
    Standard(16, "nac.clone", "clone.default", 1),
    Standard(17, "nac.view", "view.default", 1),
    Standard(18, "nac.le", "le.Tensor", 1),
    Standard(19, "nac.arange", "nac.arange", 1),
    Standard(20, "nac.mul", "mul.Tensor", 2),
    Standard(21, "nac.div", "div.Tensor", 2),
    Standard(22, "nac.matmul", "matmul.default", 2),
    Standard(23, "nac.transpose", "nac.transpose", 2),
    Standard(24, "nac.zeros", "zeros.default", 2),
    Standard(25, "nac.zeros_like", "zeros_like.default", 2),
    Standard(26, "nac.new_zeros", "new_zeros.default", 2),
    Standard(27, "nac.ones", "ones.default", 2),
    Standard(28, "nac.ones_like", "ones_like.default", 2),
    Standard(29, "nac.new_ones", "new_ones.default", 2),
    Standard(30, "nac.full", "full.default", 2),
    Standard(31, "nac.full_like", "full_like.default", 2),
)

STANDARD_NAMES: Mapping[str, Standard] = MappingProxyType({row.name: row for row in _ROWS})


@cache
def standard_ids(version: int) -> Mapping[int, Standard]:
    """The standard operations of a version by id."""
    return MappingProxyType({row.id: row for row in _ROWS if row.since <= version})


def call_of(name: str) -> str:
    """The call behind a name of CMAP or of a standard operation: `aten.` is left out."""
    standard = STANDARD_NAMES.get(name)
    return standard.call if standard is not None else name.removeprefix("aten.")
