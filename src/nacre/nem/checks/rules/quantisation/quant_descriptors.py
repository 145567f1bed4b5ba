"""QNT01-QNT08: quantisation descriptors against the regions that carry them."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.rules import Check, declare, rule
from nacre.kernels.interface.shapes import axis_of
from nacre.nem.checks.attributes import item_node, value_text
from nacre.nem.checks.concrete_tasks import distinct_values
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import region_text
from nacre.nem.model.program import Quant, Region
from nacre.nem.plan.columns import as_term
from nacre.nem.syntax import ast

_QUANT = "Type System / Quantization Descriptor"
_LEAST_SCALE = 2.0**-149  # the least f32 above 0; scales are computed with in f32


class _QuantisedRegion(Struct, frozen=True):
    """A region that carries a descriptor."""

    region: Region
    quant: Quant

    @property
    def axis(self) -> int | None:
        """The axis, counted from the front; None where there is none."""
        shape, axis = self.region.shape, self.quant.axis
        return axis_of(axis, len(shape)) if shape is not None and axis is not None else None

    @property
    def group(self) -> int | None:
        """How many indices of the axis share a scale; None where that has been reported."""
        if self.quant.form != "per_group":
            return 1
        size = self.quant.group_size
        return size if size is not None and size > 0 else None


def _descriptors(facts: ProgramFacts, *forms: str) -> Iterator[_QuantisedRegion]:
    for region in facts.program.regions:
        if region.quant is not None and (not forms or region.quant.form in forms):
            yield _QuantisedRegion(region, region.quant)


def _wrong_counts(
    facts: ProgramFacts, check: Check[ProgramFacts], form: str, part: str
) -> Iterator[Diagnostic]:
    """Findings for lists that have more or fewer entries than channels or groups."""
    for one in _descriptors(facts, form):
        quant = one.quant
        values = quant.scales if part == "scales" else quant.zero_points
        node = quant.node.scales if part == "scales" else quant.node.zero_points
        if values is None or node is None:
            continue
        for size, iteration in _sizes(facts, one):
            expected = -(-size // (one.group or 1))
            if expected != len(values):
                message = (
                    f"{region_text(one.region)} has {len(values)} {part.replace('_', ' ')}, "
                    f"expected {expected} {_reason(one, size)}{iteration}"
                )
                yield check.at(facts.span(node), message)
                break


def _sizes(facts: ProgramFacts, one: _QuantisedRegion) -> Iterator[tuple[int, str]]:
    """The positive sizes that the axis of a descriptor has, each with its first iteration."""
    axis, shape = one.axis, one.region.shape
    if axis is None or shape is None or one.group is None:
        return
    term = as_term(shape[axis])
    if term is not None:
        for (size,), iteration in distinct_values(facts, one.region.loops, [term]):
            if size > 0:
                yield size, iteration


def _reason(one: _QuantisedRegion, size: int) -> str:
    axis, group = one.quant.axis, one.quant.group_size
    if one.quant.form == "per_channel":
        return f"for the {size} channels of axis {axis}"
    return f"for groups of {group} along the {size} elements of axis {axis}"


@rule("QNT01", "scales-per-channel", _QUANT)
def scales_per_channel(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A `per_channel` descriptor has not one scale for each index of its axis.

    Bad (-) and good (+):

          buffer B : L2 (size=8)
          r = region(B, 0, 8) elem=i8, shape=[2, 4], layout=MN,
        -     quant=per_channel(axis=0, scales=[0.5, 0.5, 0.5], zero_points=[0, 0])
        +     quant=per_channel(axis=0, scales=[0.5, 0.5], zero_points=[0, 0])
    """
    yield from _wrong_counts(facts, scales_per_channel, "per_channel", "scales")


@rule("QNT02", "zero-points-per-channel", _QUANT)
def zero_points_per_channel(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A `per_channel` descriptor has not one zero point for each index of its axis.

    Bad (-) and good (+):

          buffer B : L2 (size=8)
          r = region(B, 0, 8) elem=i8, shape=[2, 4], layout=MN,
        -     quant=per_channel(axis=0, scales=[0.5, 0.5], zero_points=[0])
        +     quant=per_channel(axis=0, scales=[0.5, 0.5], zero_points=[0, 0])
    """
    yield from _wrong_counts(facts, zero_points_per_channel, "per_channel", "zero_points")


@rule("QNT03", "scales-per-group", _QUANT)
def scales_per_group(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A `per_group` descriptor has not one scale for each group along its axis.

    The last group may be shorter: 5 elements in groups of 2 make 3 groups.

    Bad (-) and good (+):

          buffer B : L2 (size=5)
          r = region(B, 0, 5) elem=i8, shape=[5], layout=C,
        -     quant=per_group(axis=0, group_size=2, scales=[0.5, 0.5], zero_points=[0, 0, 0])
        +     quant=per_group(axis=0, group_size=2, scales=[0.5, 0.5, 0.5], zero_points=[0, 0, 0])
    """
    yield from _wrong_counts(facts, scales_per_group, "per_group", "scales")


@rule("QNT04", "zero-points-per-group", _QUANT)
def zero_points_per_group(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A `per_group` descriptor has not one zero point for each group along its axis.

    Bad (-) and good (+):

          buffer B : L2 (size=5)
          r = region(B, 0, 5) elem=i8, shape=[5], layout=C,
        -     quant=per_group(axis=0, group_size=2, scales=[0.5, 0.5, 0.5], zero_points=[0, 0])
        +     quant=per_group(axis=0, group_size=2, scales=[0.5, 0.5, 0.5], zero_points=[0, 0, 0])
    """
    yield from _wrong_counts(facts, zero_points_per_group, "per_group", "zero_points")


@rule("QNT05", "group-size-not-positive", _QUANT)
def group_size_not_positive(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The groups of a `per_group` descriptor have no elements.

    Bad (-) and good (+):

          buffer B : L2 (size=4)
          r = region(B, 0, 4) elem=i8, shape=[4], layout=C,
        -     quant=per_group(axis=0, group_size=0, scales=[0.5, 0.5], zero_points=[0, 0])
        +     quant=per_group(axis=0, group_size=2, scales=[0.5, 0.5], zero_points=[0, 0])
    """
    for one in _descriptors(facts, "per_group"):
        size, node = one.quant.group_size, one.quant.node.group_size
        if size is not None and node is not None and size < 1:
            message = f"{region_text(one.region)} has groups of {size}, expected at least 1"
            yield group_size_not_positive.at(facts.span(node), message)


@rule("QNT06", "quant-axis-out-of-range", _QUANT)
def quant_axis_out_of_range(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The axis of a descriptor is no axis of its region; a negative one counts from the end.

    Bad (-) and good (+):

          buffer B : L2 (size=8)
          r = region(B, 0, 8) elem=i8, shape=[2, 4], layout=MN,
        -     quant=per_channel(axis=2, scales=[0.5, 0.5], zero_points=[0, 0])
        +     quant=per_channel(axis=0, scales=[0.5, 0.5], zero_points=[0, 0])
    """
    for one in _descriptors(facts, "per_channel", "per_group"):
        node, shape = one.quant.node.axis, one.region.shape
        if node is not None and shape is not None and one.axis is None:
            text = f"{region_text(one.region)} is quantised along axis {one.quant.axis}"
            message = f"{text}, expected {-len(shape)} to {len(shape) - 1}"
            yield quant_axis_out_of_range.at(facts.span(node), message)


@rule("QNT07", "wrong-scale-or-zero-point", _QUANT)
def wrong_scale_or_zero_point(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A scale is not a positive number, or a zero point is no value of the element type.

    Bad (-) and good (+):

          buffer B : L2 (size=4)
          r = region(B, 0, 4) elem=i8, shape=[4], layout=C,
        -     quant=per_tensor(scale=0.5, zero_point=128)
        +     quant=per_tensor(scale=0.5, zero_point=-128)
    """
    for one in _descriptors(facts):
        quant = one.quant
        for what, values, node in (
            ("scale", quant.scales, quant.node.scales),
            ("zero point", quant.zero_points, quant.node.zero_points),
        ):
            if values is None or node is None:
                continue
            problem = _value_problem(one, what, values, node)
            if problem is not None:
                entry, text = problem
                message = f"{region_text(one.region)} has {text}"
                yield wrong_scale_or_zero_point.at(facts.span(entry), message)


def _value_problem(
    one: _QuantisedRegion, what: str, values: tuple[object, ...], node: ast.Value
) -> tuple[ast.Value, str] | None:
    if one.quant.form == "per_tensor" and len(values) != 1:
        return node, f"{len(values)} {what}s, expected one for the whole tensor"
    if what == "scale" and _are_scales(values):
        return None
    for index, value in enumerate(values):
        entry = item_node(node, index)
        if value is None:
            continue
        expected = (
            _expected_scale(value)
            if what == "scale"
            else _expected_zero_point(value, one.region.elem)
        )
        if expected is not None:
            return entry, f"{value_text(value, entry)} as {what}, expected {expected}"
    return None


def _are_scales(values: tuple[object, ...]) -> bool:
    """Whether all values are floats that scales can be, as mostly they are."""
    scales = [value for value in values if type(value) is float]
    if not scales or len(scales) < len(values) or any(map(isnan, scales)):
        return False
    return min(scales) >= _LEAST_SCALE and max(scales) <= ELEMENT_TYPES["f32"].highest


def _expected_scale(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "a number"
    if _LEAST_SCALE <= value <= ELEMENT_TYPES["f32"].highest:
        return None
    return "a number above 0 that f32 can hold"


def _expected_zero_point(value: object, elem: str | None) -> str | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return "an integer"
    element = ELEMENT_TYPES[elem] if elem is not None else None
    if element is None or not element.is_integer or element.lowest <= value <= element.highest:
        return None
    return f"{element.lowest} to {element.highest}, the range of {elem}"


declare(
    "QNT08",
    "last-group-may-be-short",
    _QUANT,
    """
    Where the groups do not divide the axis, the last one has fewer elements.

    It has a scale and a zero point of its own; no diagnostic carries this code.
    """,
    behaviour=True,
)
