"""TOK05, TOK06, TOK08: the two sides of a transfer or store fit each other."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.rules import Check, rule
from nacre.base.term_columns import TermProblem, Values
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import in_iteration
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Operand, Quant, Region, Task
from nacre.nem.plan.columns import Exact, add, as_term, first_row, multiply, product, value_at
from nacre.nem.plan.footprints import copies_elements, quantises
from nacre.nem.plan.grid import Grid

_TRANSFER = "Task Taxonomy / Transfer Tasks"


class _Copy(Struct, frozen=True):
    """A transfer or store whose two regions are known, in the iterations around it."""

    task: Task
    grid: Grid
    dst: Operand
    src: Operand
    into: Region
    out_of: Region


def _copies(facts: ProgramFacts) -> Iterator[_Copy]:
    for task in facts.program.tasks:
        if task.op not in ("transfer", "store") or len(task.operands) != 2:
            continue
        dst, src = task.operands
        grid = facts.plan.grid_of(task.loops)
        if grid is not None and dst.region is not None and src.region is not None:
            yield _Copy(task, grid, dst, src, dst.region, src.region)


def _mismatch(copy: _Copy, device: Device) -> tuple[str, str, str] | None:
    """How the types of the two sides differ: of the source, of the destination, and when."""
    into, out_of = copy.into, copy.out_of
    if into.elem is None or out_of.elem is None or _is_converted(copy, device):
        return None
    if into.elem != out_of.elem:
        return f"`{out_of.elem}` elements", f"`{into.elem}`", ""
    counts = _count(out_of, copy.grid), _count(into, copy.grid)
    if counts[0] is not None and counts[1] is not None:
        row = first_row(counts[0] != counts[1])
        if row is not None:
            varies = not all(isinstance(count, int) for count in counts)
            when = in_iteration(copy.grid, row) if varies else ""
            return f"{value_at(counts[0], row)} elements", f"{value_at(counts[1], row)}", when
    if _quants_differ(into.quant, out_of.quant):
        return "elements with one `quant`", "elements with another", ""
    return None


def _is_converted(copy: _Copy, device: Device) -> bool:
    """Whether a store quantises on its way, between types that the device lists for it."""
    types = {"src": copy.out_of.elem, "dst": copy.into.elem}
    listed = any(i.operands == types for i in device.effective_by_opcode.get("store", ()))
    return listed and quantises(copy.task)


def _count(region: Region, grid: Grid) -> Exact | None:
    if region.shape is None:
        return None
    dims: list[Values] = []
    for dim in region.shape:
        term = as_term(dim)
        if term is None:
            return None
        try:
            dims.append(grid.evaluate(term))
        except TermProblem:  # reported where the region is checked
            return None
    return product(dims)


def _quants_differ(a: Quant | None, b: Quant | None) -> bool:
    if a is None or b is None:
        return False
    unknown = None in (a.scales, a.zero_points, b.scales, b.zero_points)
    return not unknown and a != b


@rule("TOK05", "copy-between-types", _TRANSFER)
def copy_between_types(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A transfer or store copies between regions of different types.

    This is asked only where both sides have a type: the element types and the numbers of elements
    are equal, and so is `quant` where both carry one. A copy never converts, but for a `store` of
    floats into integers of the same shape with `quant` (per tensor or per channel), where the
    device lists a variant of `store.quant` for the two types.

    Bad (-) and good (+):

          buffer A : DDR (size=128)
          buffer B : L2 (size=128)
        - let X = region(A, 0, 128) elem=i8, shape=[128], layout=C
        + let X = region(A, 0, 128) elem=f16, shape=[64], layout=C
          let Y = region(B, 0, 128) elem=f16, shape=[64], layout=C
          t = transfer.async(dst=Y, src=X)
    """
    for copy in _copies(facts):
        mismatch = _mismatch(copy, facts.device)
        if mismatch is None or (_has_same_elem(copy) and _misfit(copy, "small") is not None):
            continue
        source, destination, when = mismatch
        where = Related(facts.span(copy.src.node.value), "the source stands here")
        yield copy_between_types.at(
            facts.span(copy.dst.node.value),
            f"`{copy.task.op}` copies {source}{when}, but its destination has {destination}",
            related=(where,),
            help=_conversion_help(copy, facts.device),
        )


def _conversion_help(copy: _Copy, device: Device) -> str | None:
    """Why a store does not quantise here; None where nobody can have meant that."""
    source, target = copy.out_of.elem or "", copy.into.elem or ""
    if copy.task.op != "store" or not _is_float(source) or _is_float(target):
        return None
    if copy.into.quant is None:
        return "a store quantises where its destination carries `quant`"
    if copy.into.quant.form == "per_group":
        return "a store quantises per tensor or per channel; use `quantize` first"
    if copy.into.shape != copy.out_of.shape:
        return "a store quantises between regions of one shape"
    listed = f"device `{device.name}` lists no `store.quant<{source}, {target}>`"
    return f"{listed}; use `quantize` first, and store its result"


def _is_float(elem: str) -> bool:
    return not ELEMENT_TYPES[elem].is_integer


def _has_same_elem(copy: _Copy) -> bool:
    return copy.into.elem == copy.out_of.elem


def _misfit(copy: _Copy, how: str) -> tuple[int, int, str] | None:
    """Bytes of the source and of a destination that is too `small` or `large`, and when."""
    if copies_elements(copy.task):  # element by element, over gaps on either side
        return None
    source, destination = _plain_bytes(copy.out_of, copy.grid), _extent(copy.into, copy.grid)
    if copy.into.compression is not None or source is None or destination is None:
        return None
    row = first_row(destination < source if how == "small" else destination > source)
    if row is None:
        return None
    varies = not (isinstance(source, int) and isinstance(destination, int))
    when = in_iteration(copy.grid, row) if varies else ""
    return value_at(source, row), value_at(destination, row), when


def _plain_bytes(region: Region, grid: Grid) -> Exact | None:
    """What a source gives: its extent, or the elements that it holds compressed."""
    if region.compression is None:
        return _extent(region, grid)
    count, element = _count(region, grid), ELEMENT_TYPES.get(region.elem or "")
    if count is None or element is None or first_row(count < 1) is not None:
        return None
    return add(multiply(count, element.bits), 7) // 8


def _extent(region: Region, grid: Grid) -> Values | None:
    term = as_term(region.extent)
    try:
        values = grid.evaluate(term) if term is not None else None
    except TermProblem:  # reported where the region is checked
        return None
    is_sound = values is not None and first_row(values < 1) is None
    return values if is_sound else None


def _report_misfits(
    facts: ProgramFacts, check: Check[ProgramFacts], how: str, help_: str
) -> Iterator[Diagnostic]:
    for copy in _copies(facts):
        misfit = _misfit(copy, how)
        if misfit is None or not _has_fitting_types(copy, how, facts.device):
            continue
        source, destination, when = misfit
        yield check.at(
            facts.span(copy.dst.node.value),
            f"`{copy.task.op}` copies {source} bytes{when}, but its destination has {destination}",
            related=(Related(facts.span(copy.src.node.value), f"the source has {source} bytes"),),
            help=help_,
        )


def _has_fitting_types(copy: _Copy, how: str, device: Device) -> bool:
    """Whether the sizes are the mistake, and not the types, which TOK05 reports."""
    return (how == "small" and _has_same_elem(copy)) or _mismatch(copy, device) is None


@rule("TOK06", "destination-too-small", _TRANSFER)
def destination_too_small(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The destination of a transfer or store is smaller than its source.

    The whole extent of the source is copied, or what its compressed elements become.

    Bad (-) and good (+):

          buffer A : DDR (size=64)
          buffer B : L2 (size=64)
        - t = transfer.async(dst=region(B, 0, 32), src=region(A, 0, 64))
        + t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64))
    """
    yield from _report_misfits(
        facts, destination_too_small, "small", "make the destination as large as the source"
    )


@rule("TOK08", "destination-too-large", _TRANSFER, severity="warning")
def destination_too_large(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The destination of a transfer or store is larger than its source; its end stays as it was.

    Bad (-) and good (+):

          buffer A : DDR (size=64)
          buffer B : L2 (size=64)
        - t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 32))
        + t = transfer.async(dst=region(B, 0, 32), src=region(A, 0, 32))
    """
    yield from _report_misfits(
        facts, destination_too_large, "large", "make the destination as large as the source"
    )
