"""WDM: regions that hold their elements compressed, and what may read them."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.compression_forms import MAX_PALETTE_BITS
from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.rules import rule
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import device_text, in_iteration, region_text
from nacre.nem.model.program import Compression, Operand, Region, Task
from nacre.nem.plan.bounds import RegionProblem, region_problems
from nacre.nem.plan.decompression import decompresses, decompression_figure
from nacre.nem.syntax import ast

_UNITS = "Abstract Machine Model / Device-Level Execution Units"
_HOLDS = "a compressed region is the source of a `transfer` from DDR to L2, or from L2 to L1"


def _compressed(facts: ProgramFacts) -> Iterator[tuple[Region, Compression]]:
    for region in facts.program.regions:
        if region.compression is not None:
            yield region, region.compression


def _compressed_operands(facts: ProgramFacts) -> Iterator[tuple[Task, Operand, Region]]:
    for task in facts.program.tasks:
        for operand in task.operands:
            if operand.region is not None and operand.region.compression is not None:
                yield task, operand, operand.region


@rule("WDM01", "compressed-extension", _UNITS, severity="warning", strict_only=True)
def compressed_extension(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A region says that it is `compressed`. Reported with `--strict` only.

    The language text has a unit that decompresses weights on their way in, and no way to say in a
    program that they are compressed. The attribute is an extension of nacre; tools that follow the
    text alone refuse the program.

    Bad (-) and good (+):

          include "npm_pro.nem"
          device npm_pro
          buffer A : DDR (size=128)
          buffer B : L2 (size=128)
        - t = transfer.async(
        -     dst=region(B, 0, 128),
        -     src=region(A, 0, 72) elem=i8, shape=[128], layout=C, compressed=sparse
        - )
        + t = transfer.async(dst=region(B, 0, 128), src=region(A, 0, 128))
    """
    for _, compression in _compressed(facts):
        message = "`compressed` is an extension of the language"
        yield compressed_extension.at(
            facts.span(_form_node(facts, compression)), message, help="other tools may not know it"
        )


@rule("WDM02", "compressed-region-misplaced", _UNITS)
def compressed_region_misplaced(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A compressed region is used where nothing decompresses it.

    Only a `transfer` from DDR to L2, or from L2 to L1, leads through the unit that does, and only
    its source can be compressed.

    Bad (-) and good (+):

          include "npm_pro.nem"
          device npm_pro
          buffer A : DDR (size=128)
          buffer B : L2 (size=128)
        - t = transfer.async(
        -     dst=region(B, 0, 72) elem=i8, shape=[128], layout=C, compressed=sparse,
        -     src=region(A, 0, 72)
        - )
        + t = transfer.async(
        +     dst=region(B, 0, 128),
        +     src=region(A, 0, 72) elem=i8, shape=[128], layout=C, compressed=sparse
        + )
    """
    for task, operand, region in _compressed_operands(facts):
        if not _may_lead_through(task, operand):
            message = (
                f"`{task.op}` {_use(task, operand)} {region_text(region)}, which is compressed"
            )
            related = () if region.compression is None else _declared(facts, region.compression)
            yield compressed_region_misplaced.at(
                facts.span(operand.node.value), message, related=related, help=_HOLDS
            )


def _may_lead_through(task: Task, operand: Operand) -> bool:
    """Whether a unit can decompress the operand; True as well where a level was reported."""
    levels = [o.region.buffer.level for o in task.operands if o.region and o.region.buffer]
    if task.op != "transfer" or operand.access != "read":
        return False
    return decompresses(task) or len(levels) != 2 or None in levels


def _use(task: Task, operand: Operand) -> str:
    if operand.access == "write":
        return "writes"
    levels = [o.region.buffer.level for o in task.operands if o.region and o.region.buffer]
    way = f" from {levels[1]} to {levels[0]}" if task.op == "transfer" and len(levels) == 2 else ""
    return f"{'copies' if task.op in ('transfer', 'store') else 'reads'}{way}"


def _declared(facts: ProgramFacts, compression: Compression) -> tuple[Related, ...]:
    return (Related(facts.span(_form_node(facts, compression)), "it is compressed here"),)


def _form_node(facts: ProgramFacts, compression: Compression) -> ast.Node:
    """What follows the type and its comma."""
    node = compression.node
    start = facts.program.source.text.find("compressed", node.plain.end, node.end)
    return ast.Node(max(start, node.plain.end), node.end)


@rule("WDM03", "no-decompression", _UNITS)
def no_decompression(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A transfer decompresses on a device that cannot: no `WDM`, not this form, or smaller tables.

    The figures of a `WDM` are `palette_entries` (of a table), `palette_tables` (of a transfer) and
    `sparse`; 0 means that it has none of the kind.

    Bad (-) and good (+):

        - include "npm_lite.nem"
        - device npm_lite
        + include "npm_pro.nem"
        + device npm_pro
          buffer A : DDR (size=128)
          buffer B : L2 (size=128)
          t = transfer.async(
              dst=region(B, 0, 128),
              src=region(A, 0, 72) elem=i8, shape=[128], layout=C, compressed=sparse
          )
    """
    if facts.device.is_abstract:
        return
    for task, operand, region in _compressed_operands(facts):
        if region.compression is None or not decompresses(task):
            continue
        lacks = _lacking(facts, region.compression)
        if lacks is not None:
            what, help_ = lacks
            yield no_decompression.at(
                facts.span(operand.node.value),
                f"{region_text(region)} is compressed, but {device_text(facts)} {what}",
                related=_declared(facts, region.compression),
                help=help_,
            )


def _lacking(facts: ProgramFacts, compression: Compression) -> tuple[str, str] | None:
    """What the device lacks, and what to do."""
    plain = "take the weights as they are, or another device"
    if facts.device.count("WDM") < 1:
        return "has no `WDM`", plain
    if compression.name == "sparse":
        has = decompression_figure(facts.device, "sparse") > 0
        return None if has else ("has no `sparse` form", plain)
    if compression.form is None:  # WDM04
        return None
    entries = decompression_figure(facts.device, "palette_entries")
    if 1 << compression.form.bits > entries:
        needed = f"has tables of {entries} elements, {1 << compression.form.bits} are needed"
        return (needed, "take fewer `bits`") if entries > 1 else ("has no `palette` form", plain)
    tables = decompression_figure(facts.device, "palette_tables")
    if compression.form.tables > tables:
        own = "one table" if tables == 1 else f"{tables} tables"
        return f"has {own}, {compression.form.tables} are needed", "take fewer `tables`"
    return None


@rule("WDM04", "malformed-compression", _UNITS)
def malformed_compression(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The figures of a compressed region cannot be meant.

    A palette has 1 to 8 `bits`; its `tables`, one where none are given, cut the elements into parts
    of one size. Elements are compressed in their order: the type has a `layout`, not `strides`.

    Bad (-) and good (+):

          include "npm_pro.nem"
          device npm_pro
          buffer A : DDR (size=128)
          buffer B : L2 (size=128)
          t = transfer.async(
              dst=region(B, 0, 128),
        -     src=region(A, 0, 80) elem=i8, shape=[128], layout=C, compressed=palette(bits=12)
        +     src=region(A, 0, 80) elem=i8, shape=[128], layout=C, compressed=palette(bits=4)
          )
    """
    for region, compression in _compressed(facts):
        for node, message in _malformed(region, compression):
            yield malformed_compression.at(facts.span(node), message)
    for problem in region_problems(facts.plan):
        if problem.kind == "parts of one size":
            found = f"{problem.value} elements{_when(problem)} cannot be cut into {problem.limit}"
            message = f"{found} parts of one size, one for each of the `tables`"
            yield malformed_compression.at(facts.span(problem.node), message)


def _malformed(region: Region, compression: Compression) -> Iterator[tuple[ast.Node, str]]:
    node = compression.node
    if region.strides is not None and node.plain.strides is not None:
        yield node.plain.strides, f"{region_text(region)} is compressed and has `strides`"
    if node.bits is not None and not 1 <= node.bits.value <= MAX_PALETTE_BITS:
        yield node.bits, f"a palette has 1 to {MAX_PALETTE_BITS} `bits`, found {node.bits.value}"
    if node.tables is not None and node.tables.value < 1:
        yield node.tables, f"a palette has 1 or more `tables`, found {node.tables.value}"


def _when(problem: RegionProblem) -> str:
    return in_iteration(problem.grid, problem.row) if problem.varies else ""


@rule("WDM05", "compressed-extent", _UNITS)
def compressed_extent(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The extent of a compressed region is not what its elements take.

    A palette takes its tables, `2**bits` elements each, and `bits` for each element; both end with
    a whole byte. A sparse region takes a bit for each element, in whole bytes, and the elements
    that are not 0: its extent may be anything from none of them to all.

    Bad (-) and good (+):

          include "npm_pro.nem"
          device npm_pro
          buffer A : DDR (size=128)
          buffer B : L2 (size=128)
          t = transfer.async(
              dst=region(B, 0, 128),
        -     src=region(A, 0, 64) elem=i8, shape=[128], layout=C, compressed=palette(bits=4)
        +     src=region(A, 0, 80) elem=i8, shape=[128], layout=C, compressed=palette(bits=4)
          )
    """
    for problem in region_problems(facts.plan):
        if problem.kind in ("compressed short", "compressed long"):
            has = f"{region_text(problem.region)} has an extent of {problem.value}{_when(problem)}"
            bound = "at least" if problem.kind == "compressed short" else "at most"
            compression = problem.region.compression
            if compression is not None and compression.name == "palette":
                bound = "exactly"
            message = f"{has}, but its compressed elements take {bound} {problem.limit} bytes"
            yield compressed_extent.at(facts.span(problem.node), message)
