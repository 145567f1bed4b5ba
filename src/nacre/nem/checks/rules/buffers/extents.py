"""EXT: regions lie inside their buffers and hold their elements, in every iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.rules import Check, declare, rule
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import in_iteration, no_value_finding, region_text
from nacre.nem.plan.bounds import RegionProblem, region_problems

_REGIONS = "Core Program Objects / Regions"
_EXTENT = "Extent Consistency"
_STRIDES = "Type System / Layout and Strides"


def _past_the_buffer(p: RegionProblem, region: str, when: str) -> str:
    buffer = p.region.buffer.name if p.region.buffer is not None else "?"
    return f"{region} ends at byte {p.value}{when}, but buffer `{buffer}` has {p.limit}"


def _extent_too_small(p: RegionProblem, region: str, when: str) -> str:
    has = f"{region} has an extent of {p.value}{when}"
    return f"{has}, but its `{p.region.elem}` elements take {p.limit} bytes"


def _past_the_extent(p: RegionProblem, region: str, when: str) -> str:
    return f"the strides of {region} reach byte {p.value}{when}, but its extent is {p.limit}"


def _before_the_start(p: RegionProblem, region: str, when: str) -> str:
    return f"the strides of {region} reach {-p.value} bytes before its start{when}"


_MESSAGES: dict[str, Callable[[RegionProblem, str, str], str]] = {
    "past the buffer": _past_the_buffer,
    "short": _extent_too_small,
    "stride past the end": _past_the_extent,
    "stride before the start": _before_the_start,
    "offset below 0": lambda p, region, when: (
        f"the offset of {region} is {p.value}{when}, expected 0 or more"
    ),
    "extent below 0": lambda p, region, when: (
        f"the extent of {region} is {p.value}{when}, expected 1 or more"
    ),
    "extent of 0": lambda _, region, when: f"the extent of {region} is 0{when}, expected 1 or more",
    "dimension below 1": lambda p, region, when: (
        f"dimension {p.index} of {region} is {p.value}{when}, expected 1 or more"
    ),
}


def code_of(problem: RegionProblem) -> str | None:
    """Which rule of EXT a region breaks; None where it is none of them."""
    kind = problem.kind
    if kind == "no value" or kind.startswith("compressed") or kind == "parts of one size":
        return None  # WDM04 and WDM05
    if kind in ("offset below 0", "extent below 0"):
        return "EXT05"
    if kind in ("extent of 0", "dimension below 1"):
        return "EXT07"
    if not problem.is_everywhere:
        return "EXT08"
    if kind == "short":
        return "EXT03" if problem.region.elem == "i4" else "EXT02"
    return "EXT01" if kind == "past the buffer" else "EXT04"


def _report_problems(facts: ProgramFacts, check: Check[ProgramFacts]) -> Iterator[Diagnostic]:
    for problem in region_problems(facts.plan):
        if code_of(problem) == check.code:
            when = in_iteration(problem.grid, problem.row) if problem.varies else ""
            message = _MESSAGES[problem.kind](problem, region_text(problem.region), when)
            yield check.at(facts.span(problem.node), message, related=_buffer(facts, problem))


def _buffer(facts: ProgramFacts, problem: RegionProblem) -> tuple[Related, ...]:
    buffer = problem.region.buffer
    if problem.kind != "past the buffer" or buffer is None:
        return ()
    return (Related(facts.span(buffer.node.name), f"`{buffer.name}` is declared here"),)


def regions_have_values(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Expressions of regions that divide by zero or leave 64 bits in some iteration."""
    for problem in region_problems(facts.plan):
        if problem.problem is not None:
            yield no_value_finding(facts, problem.node, problem.grid, problem.problem)


@rule("EXT01", "region-out-of-bounds", _REGIONS)
def region_out_of_bounds(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A region reaches past the end of its buffer.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
        - r = region(A, 32, 64)
        + r = region(A, 32, 32)
    """
    yield from _report_problems(facts, region_out_of_bounds)


@rule("EXT02", "extent-too-small", _EXTENT)
def extent_too_small(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A region has fewer bytes than its elements take.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
        - r = region(A, 0, 15) elem=i8, shape=[16], layout=C
        + r = region(A, 0, 16) elem=i8, shape=[16], layout=C
    """
    yield from _report_problems(facts, extent_too_small)


@rule("EXT03", "packed-extent-too-small", f"{_EXTENT} / Sub-byte packing")
def packed_extent_too_small(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A region of `i4` has fewer bytes than its elements take: two to a byte, rounded up.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
        - r = region(A, 0, 2) elem=i4, shape=[5], layout=C
        + r = region(A, 0, 3) elem=i4, shape=[5], layout=C
    """
    yield from _report_problems(facts, packed_extent_too_small)


@rule("EXT04", "strides-leave-region", _EXTENT)
def strides_leave_region(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Strides lead to an element outside the region's extent.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
        - r = region(A, 0, 8) elem=i8, shape=[2, 4], strides=[8, 1]
        + r = region(A, 0, 12) elem=i8, shape=[2, 4], strides=[8, 1]
    """
    yield from _report_problems(facts, strides_leave_region)


@rule("EXT05", "negative-offset-or-extent", _REGIONS)
def negative_offset_or_extent(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A region's offset or extent is negative, in some iteration or in all.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
        - r = region(A, 0 - 4, 4)
        + r = region(A, 4, 4)
    """
    yield from _report_problems(facts, negative_offset_or_extent)


@rule("EXT06", "strides-do-not-match-rank", _STRIDES)
def strides_do_not_match_rank(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A region has more or fewer strides than dimensions.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
        - r = region(A, 0, 4) elem=i8, shape=[2, 2], strides=[1]
        + r = region(A, 0, 4) elem=i8, shape=[2, 2], strides=[2, 1]
    """
    for region in facts.program.regions:
        type_ = region.type_node
        if region.shape is None or region.strides is None or type_ is None:
            continue
        if type_.strides is not None and len(region.strides) != len(region.shape):
            message = (
                f"{region_text(region)} has {len(region.shape)} dimensions, "
                f"but {len(region.strides)} strides"
            )
            yield strides_do_not_match_rank.at(facts.span(type_.strides), message)


@rule("EXT07", "nothing-in-region", _REGIONS)
def nothing_in_region(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A region has an extent of 0, or a dimension below 1.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
        - r = region(A, 0, 4) elem=i8, shape=[0], layout=C
        + r = region(A, 0, 4) elem=i8, shape=[4], layout=C
    """
    yield from _report_problems(facts, nothing_in_region)


@rule("EXT08", "region-out-of-bounds-in-some-iterations", _REGIONS)
def region_out_of_bounds_in_some_iterations(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A region leaves its buffer, or is too small for its elements, in some iterations only.

    Bad (-) and good (+):

          buffer A : L2 (size=256)
        - loop i in [0..4]:
        + loop i in [0..3]:
              let r = region(A, i * 64, 64)
          endloop
    """
    yield from _report_problems(facts, region_out_of_bounds_in_some_iterations)


declare(
    "EXT09",
    "strides-count-elements",
    _STRIDES,
    """
    Strides count elements, not bytes, whatever the width of the element: a stride of 1 over `i4`
    is half a byte. This is how elements are addressed; no diagnostic carries this code.
    """,
    behaviour=True,
)
declare(
    "EXT11",
    "copies-need-no-types",
    "Type System / Region Type Syntax",
    """
    Transfers and stores move bytes, so their regions need no element type or shape.

    No diagnostic carries this code.
    """,
    behaviour=True,
)
