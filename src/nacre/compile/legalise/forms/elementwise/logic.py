"""Truth values, choices and integers, in what the device has or can be asked for by name."""

from __future__ import annotations

import numpy as np

from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import Array


def not_(site: RewriteSite) -> int | None:
    """`Not` of truth values: different from true. In bytes, all other bits would turn as well."""
    if site.attributes["op"] != "Not" or site.op.type.dtype != "bool":
        return None
    true = site.add("Cast", site.literal(np.array(1), "i32"), to="bool")
    return site.add("BinOp", site.operands[0], true, op="Xor")


def neutral_logic(site: RewriteSite) -> int | None:
    """`And` with true, `Or` with false: the other side."""
    op = site.attributes["op"]
    if op not in ("And", "Or") or site.op.type.dtype != "bool":
        return None
    split = site.split(site.op)
    if split is None or not bool((split[1] == (op == "And")).all()):
        return None
    return _broadcast_to(site, split[0])


def known_choice(site: RewriteSite) -> int | None:
    """`Where` with a condition that is known.

    Of the one side, its elements are held between bounds that are infinite where it is taken, and
    the other side where it is not.
    """
    condition, a, b = site.operands
    known = site.constant(condition)
    if known is None or site.op.type.element.is_integer:
        return None
    if bool(known.all()):
        return _broadcast_to(site, a)
    if not known.any():
        return _broadcast_to(site, b)
    for value, other, taken in ((a, b, known), (b, a, ~known)):
        constant = site.constant(other)
        if constant is not None and site.type(value).shape == site.op.type.shape:
            return _clip_between(site, value, taken, constant)
    return None


def known_sides(site: RewriteSite) -> int | None:
    """`Where` between 0 and another number: the condition times the number, less it where due."""
    condition, a, b = site.operands
    yes, no = site.number(a), site.number(b)
    if yes is None or no is None or site.op.type.element.is_integer or yes * no != 0:
        return None
    if not np.isfinite(yes + no) or site.constant(condition) is not None:
        return None
    dtype = site.op.type.dtype
    taken = site.add("Cast", condition, to=dtype)
    if no:  # b where the condition is false: (condition - 1) * -b
        taken = site.add("BinOp", taken, site.literal(np.array(1.0), dtype), op="Sub")
    factor = site.literal(np.array(-no if no else yes), dtype)
    return _broadcast_to(site, site.add("BinOp", taken, factor, op="Mul"))


def _broadcast_to(site: RewriteSite, value: int) -> int:
    if site.type(value).shape == site.op.type.shape:
        return value
    return site.add("Broadcast", value, shape=site.op.type.shape)


def _clip_between(site: RewriteSite, value: int, is_taken: Array, other: Array) -> int:
    dtype = site.op.type.dtype
    low = site.literal(np.where(is_taken, -np.inf, other.astype(np.float64)), dtype)
    high = site.literal(np.where(is_taken, np.inf, other.astype(np.float64)), dtype)
    return site.add("BinOp", site.add("BinOp", value, low, op="Max"), high, op="Min")


def triangle(site: RewriteSite) -> int | None:
    """`Trilu` of floats: a choice between elements and 0."""
    if site.op.type.element.is_integer:
        return None
    shape = site.op.type.shape
    k = site.attributes["k"]
    assert isinstance(k, int)
    ones = np.ones(shape[-2:], bool)
    kept = np.triu(ones, k) if site.attributes["upper"] else np.tril(ones, k)
    return _clip_between(site, site.operands[0], kept, np.zeros((), np.float64))


def square(site: RewriteSite) -> int | None:
    """The power 2 of floats: a product."""
    if site.attributes["op"] != "Pow" or site.op.type.element.is_integer:
        return None
    if site.number(site.operands[1]) != 2.0 or site.type(site.operands[0]) != site.op.type:
        return None
    return site.add("BinOp", site.operands[0], site.operands[0], op="Mul")


def integer_bounds(site: RewriteSite) -> int | None:
    """`Clip` of integers with both bounds: NEM writes no infinities."""
    element = site.op.type.element
    low, high = site.attributes["min"], site.attributes["max"]
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    if not element.is_integer or (np.isfinite(low) and np.isfinite(high)):
        return None
    ends = max(low, float(element.lowest)), min(high, float(element.highest))
    return site.add("Clip", site.operands[0], min=ends[0], max=ends[1])


def keep_reduced_axes(site: RewriteSite) -> int | None:
    """A reduction that keeps its axes, and a view without them: regions have at least one axis."""
    if site.attributes["keepdims"]:
        return None
    given = {**site.op.attributes, "keepdims": True}
    return site.reshape(site.add(site.op.opcode, site.operands[0], **given), site.op.type.shape)


def scatter_single_row(site: RewriteSite) -> int | None:
    """`ScatterRows` of a single row: as one of several."""
    x, index, row = site.operands
    if site.type(index).rank:
        return None
    many = site.reshape(row, (1, *site.type(row).shape))
    return site.add("ScatterRows", x, site.reshape(index, (1,)), many)


def gather_single_index(site: RewriteSite) -> int | None:
    """A single index that is computed: as one of several."""
    x, index = site.operands
    if site.type(index).rank or site.constant(index) is not None:
        return None
    made = site.add(site.op.opcode, x, site.reshape(index, (1,)), **site.op.attributes)
    return site.reshape(made, site.op.type.shape)


LOGIC_FORMS: Rules = {
    "Unary": [not_],
    "Where": [known_choice, known_sides],
    "Trilu": [triangle],
    "BinOp": [square, neutral_logic],
    "Clip": [integer_bounds],
    **{name: [keep_reduced_axes] for name in ("Sum", "Mean", "Reduce", "ArgMax", "ArgMin")},
    "ScatterRows": [scatter_single_row],
    "Gather": [gather_single_index],
    "GatherAxis": [gather_single_index],
}
