"""QNT14, QNT15, QNT17: tasks that could not keep what the descriptors of their operands say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from nacre.base.diagnostics import Diagnostic, Fix
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.fixes import item_removal_fix
from nacre.base.rules import rule
from nacre.kernels.interface.shapes import Dims, axes_of, axis_of
from nacre.nem.checks.concrete_tasks import ConcreteTask, concrete_tasks
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.legality import type_matches
from nacre.nem.checks.shape_findings import first_findings
from nacre.nem.checks.tasks import compute_tasks, operand_declaration, operand_span, operand_title
from nacre.nem.model.families import standard_families
from nacre.nem.model.matching import OperandUse, TypeMatches, signature_of
from nacre.nem.model.program import Operand, Task
from nacre.nem.spec.opcodes import OPCODES, Opcode

_QUANT = "Type System / Quantization Descriptor"
_RAW = "nacre: integers with and without quant"


@rule("QNT14", "view-changes-quant", _QUANT)
def view_changes_quant(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task that keeps values has different `quant` on its two sides.

    Views and `maxpool` move integers without looking at them; another scale would give them
    another meaning. A descriptor on one side only is fine. Where a view cuts, joins or reorders
    the axis that is quantised, the two are not compared.

    Bad (-) and good (+):

          buffer S : L2 (size=32)
          buffer M : L1 (size=32)
          t = transfer.sync(dst=region(M, 0, 32), src=region(S, 0, 32))
          let X = region(M, 0, 16) elem=i8, shape=[16], layout=C,
              quant=per_tensor(scale=0.5, zero_point=0)
          let Y = region(M, 16, 16) elem=i8, shape=[4, 4], layout=MN,
        -     quant=per_tensor(scale=0.25, zero_point=0)
        +     quant=per_tensor(scale=0.5, zero_point=0)
          r = reshape.sync in X out Y target_shape=[4, 4]
    """
    for task, opcode in compute_tasks(facts):
        if "keeps_quant" not in opcode.traits:
            continue
        for concrete in concrete_tasks(facts, task, opcode):
            pair = _pair_that_differs(concrete)
            if pair is not None:
                yield _report_change(facts, task, *pair)
            break  # scales do not vary with the iteration


def _report_change(facts: ProgramFacts, task: Task, source: Operand, result: Operand) -> Diagnostic:
    return view_changes_quant.at(
        operand_span(facts, result, "quant"),
        f"{operand_title(task, result)} has another `quant` than {operand_title(task, source)}, "
        "but the values are kept",
        related=(
            *operand_declaration(facts, source, "quant"),
            *operand_declaration(facts, result, "quant"),
        ),
        help="give both sides the same `quant`, or rescale with a quantised `clamp` first",
    )


def _pair_that_differs(concrete: ConcreteTask) -> tuple[Operand, Operand] | None:
    """The first input and output of a task whose descriptors contradict each other."""
    output_axis = _whole_axes(concrete)
    sides: dict[str, list[tuple[Operand, _Meaning]]] = {"read": [], "write": []}
    for operand, dims in zip(concrete.task.operands, concrete.shapes, strict=True):
        meaning = _meaning(operand, dims)
        if meaning is not None and operand.spec is not None and operand.spec.role != "indices":
            sides[operand.access].append((operand, meaning))
    for source, a in sides["read"]:
        for result, b in sides["write"]:
            is_known = a.axis in (None, *output_axis) and b.axis in (None, *output_axis.values())
            moved = None if a.axis is None else output_axis.get(a.axis)
            if is_known and (moved, a.values) != (b.axis, b.values):
                return source, result
    return None


class _Meaning(NamedTuple):
    """What a descriptor says: a scale and a zero point for all, or for each index of an axis."""

    axis: int | None
    values: tuple[tuple[object, object], ...]


def _meaning(operand: Operand, dims: Dims) -> _Meaning | None:
    quant = operand.region.quant if operand.region is not None else None
    if quant is None or quant.scales is None or quant.zero_points is None:
        return None
    pairs = tuple(zip(quant.scales, quant.zero_points, strict=False))
    if quant.form != "per_tensor":
        axis = axis_of(quant.axis, len(dims)) if quant.axis is not None else None
        group = quant.group_size or 1
        is_sound = len(quant.scales) == len(quant.zero_points)
        if axis is None or not is_sound or -(-dims[axis] // group) != len(pairs):
            return None
        values = tuple(pairs[index // group] for index in range(dims[axis]))
        if any(value != values[0] for value in values):
            return _Meaning(axis, values)
    return _Meaning(None, pairs[:1])


def _whole_axes(concrete: ConcreteTask) -> dict[int, int]:
    """Where the axes go that a task leaves whole: axis of the input -> axis of the output."""
    rank = len(concrete.shapes[0])
    needed = {a.name for a in concrete.opcode.required_attributes if a.type in ("int", "int_list")}
    perm = concrete.numbers("perm")
    if perm is not None:
        return {axis: output_axis for output_axis, axis in enumerate(perm)}
    if "target_shape" in needed or not needed <= concrete.values.keys():
        return {}
    touched = _touched_axes(concrete, rank)
    indices = concrete.shape("indices")
    shift = len(indices) - 1 if indices is not None else 0
    return {
        a: a + shift * (a > min(touched, default=rank)) for a in range(rank) if a not in touched
    }


def _touched_axes(concrete: ConcreteTask, rank: int) -> set[int]:
    """The axes along which a task cuts, joins, pads or picks."""
    if concrete.opcode.category == "pooling":
        return set(range(1, rank - 1))
    axis, axes, pads = concrete.number("axis"), concrete.numbers("axes"), concrete.numbers("pads")
    if pads is not None:
        return {index % rank for index, width in enumerate(pads) if width}
    named_axes = axes if axes is not None else () if axis is None else (axis,)
    return {axis % rank for axis in named_axes}


@rule("QNT15", "quant-along-reduction", _QUANT)
def quant_along_reduction(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A `per_channel` descriptor varies along an axis that a task sums or compares over.

    Integers with different scales cannot be added. Weights take `per_group` there, with a sum for
    each group, or `per_channel` along their output channels.

    Bad (-) and good (+):

          buffer S : L2 (size=24)
          buffer M : L1 (size=24)
          t = transfer.sync(dst=region(M, 0, 24), src=region(S, 0, 24))
          let A = region(M, 0, 8) elem=i8, shape=[4, 2], layout=MK,
              quant=per_tensor(scale=0.02, zero_point=3)
          let B = region(M, 8, 4) elem=i8, shape=[2, 2], layout=KN,
        -     quant=per_channel(axis=0, scales=[0.005, 0.01], zero_points=[0, 0])
        +     quant=per_channel(axis=1, scales=[0.005, 0.01], zero_points=[0, 0])
          let Y = region(M, 16, 8) elem=i8, shape=[4, 2], layout=MN,
              quant=per_tensor(scale=0.25, zero_point=-10)
          g = gemm.sync in A, B out Y accum_type=i32
    """
    yield from first_findings(facts, _along_reduction, *_REDUCED)


def _along_reduction(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    for index, operand in enumerate(concrete.task.operands):
        quant = operand.region.quant if operand.region is not None else None
        if operand.access == "write" or quant is None or quant.form != "per_channel":
            continue
        dims = concrete.shapes[index]
        axis = axis_of(quant.axis, len(dims)) if quant.axis is not None else None
        reduced = _REDUCED[concrete.opcode.category](concrete, index)
        if axis is not None and dims[axis] > 1 and axis in reduced:
            yield quant_along_reduction.at(
                operand_span(facts, operand, "quant"),
                f"{operand_title(concrete.task, operand)} has a scale for each index of axis "
                f"{quant.axis}, over which `{concrete.task.op}` reduces",
                related=operand_declaration(facts, operand, "quant"),
            )


def _product_axes(concrete: ConcreteTask, index: int) -> set[int]:
    rank = len(concrete.shapes[index])
    return {rank - 1} if index == 0 else {rank - 2} if index == 1 else set()


def _convolution_axes(concrete: ConcreteTask, index: int) -> set[int]:
    x, w = concrete.shapes[:2]
    mixes_channels = concrete.opcode.attribute("groups") is not None
    if index == 1:
        return set(range(len(w) - 1 if mixes_channels else len(w) - 2))
    if index > 1:
        return set()
    channels = {len(x) - 1} if mixes_channels and w[-2] > 1 else set[int]()
    return {axis for axis, size in enumerate(w[:-2], 1) if size > 1} | channels


def _pooling_axes(concrete: ConcreteTask, index: int) -> set[int]:
    window = concrete.numbers("kernel_shape") or ()
    return {axis for axis, size in enumerate(window, 1) if size > 1}


def _reduction_axes(concrete: ConcreteTask, index: int) -> set[int]:
    axis = concrete.number("axis")
    axes = concrete.numbers("axes") if axis is None else (axis,)
    return set(axes_of(axes or (), len(concrete.shapes[index])) or ())


_REDUCED: dict[str, Callable[[ConcreteTask, int], set[int]]] = {
    "linear_algebra": _product_axes,
    "convolution": _convolution_axes,
    "pooling": _pooling_axes,
    "reduction": _reduction_axes,
}


@rule(
    "QNT17",
    "quant-on-some-operands",
    _RAW,
    severity="warning",
    fix="takes a `quant` out that has no effect",
)
def quant_on_some_operands(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Some integers of a task carry `quant` and others do not: it is computed on raw integers.

    Only where all of them carry it are they dequantised, computed and quantised again. Views and
    `maxpool`, which keep values as they are, and `cast`, which looks at stored values only, are
    left out; so are the sums of products, of which QNT16 speaks. `quant` on floats is ignored, also
    by copies, views and conversions: a store quantises by the `quant` of its destination.

    Bad (-) and good (+):

          buffer S : L2 (size=32)
          buffer M : L1 (size=32)
          let X = region(M, 0, 16) elem=i8, shape=[16], layout=C,
              quant=per_tensor(scale=0.5, zero_point=-100)
        - let Y = region(M, 16, 16) elem=i8, shape=[16], layout=C
        + let Y = region(M, 16, 16) elem=i8, shape=[16], layout=C,
        +     quant=per_tensor(scale=0.25, zero_point=-128)
          t = transfer.sync(dst=region(M, 0, 32), src=region(S, 0, 32))
          r = relu.sync in X out Y
    """
    yield from _floats_that_keep_values(facts)
    typed = {task.position: matches for task, _, matches in type_matches(facts)}
    for task, opcode in compute_tasks(facts):
        signature = signature_of(task)
        if signature is None or _is_judged_elsewhere(opcode, typed.get(task.position)):
            continue
        pairs = list(zip(task.operands, signature.uses, strict=True))
        bare = [o for o, use in pairs if _may_carry_quant(opcode, o) and _is_bare(use)]
        carrying = [o for o, use in pairs if use.has_quant]
        ignored = [o for o, use in pairs if use.has_quant and not _is_integer(use)]
        if ignored:
            yield _quant_without_effect(facts, task, ignored[0])
        elif bare and carrying:
            yield quant_on_some_operands.at(
                operand_span(facts, bare[0], "elem"),
                f"{operand_title(task, bare[0])} carries no `quant`, but "
                f"{operand_title(task, carrying[0])} does; `{task.op}` computes "
                "on the raw integers",
                related=operand_declaration(facts, bare[0], "elem"),
                help="give all its operands `quant`, or none",
            )


def _floats_that_keep_values(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Floats with `quant` in copies, views and conversions, which are not computed on."""
    for task in facts.program.tasks:
        opcode = OPCODES.get(task.op)
        if opcode is None or not _keeps_values(opcode):
            continue
        ignored = next((o for o in task.operands if _is_float_with_quant(o)), None)
        if ignored is not None:
            yield _quant_without_effect(facts, task, ignored)


def _keeps_values(opcode: Opcode) -> bool:
    is_moving = opcode.category in ("data_movement", "view", "conversion")
    return is_moving or "keeps_quant" in opcode.traits


def _is_float_with_quant(operand: Operand) -> bool:
    region = operand.region
    if region is None or region.quant is None or region.elem is None:
        return False
    return not ELEMENT_TYPES[region.elem].is_integer


def _quant_without_effect(facts: ProgramFacts, task: Task, operand: Operand) -> Diagnostic:
    return quant_on_some_operands.at(
        operand_span(facts, operand, "quant"),
        f"{operand_title(task, operand)} carries `quant`, but its elements are floats; "
        "it has no effect",
        related=operand_declaration(facts, operand, "quant"),
        help="leave `quant` out",
        fix=_quant_removal_fix(facts, operand),
    )


def _quant_removal_fix(facts: ProgramFacts, operand: Operand) -> Fix | None:
    region = operand.region
    type_ = None if region is None else region.type_node
    if type_ is None or type_.quant is None:
        return None
    source = facts.program.source
    start = source.text.rfind("quant", 0, type_.quant.start)
    return None if start < type_.start else item_removal_fix(source.span(start, type_.quant.end))


def _is_judged_elsewhere(opcode: Opcode, matches: TypeMatches | None) -> bool:
    """Whether `quant` does nothing to an opcode, or another rule speaks about the task."""
    if opcode.category in ("view", "conversion", "generic") or "keeps_quant" in opcode.traits:
        return True
    if "integers_need_quant" in opcode.traits:  # TYP17
        return True
    if matches is None:
        return False
    instance = matches.instance
    is_standard = instance is not None and instance.family in standard_families()
    return not matches.is_legal or (opcode.is_product and is_standard)


def _may_carry_quant(opcode: Opcode, operand: Operand) -> bool:
    spec = operand.spec
    if spec is None or spec.elem is not None:  # indices, and positions
        return False
    return not opcode.is_product or spec.role in ("input", "weight")


def _is_integer(use: OperandUse) -> bool:
    return ELEMENT_TYPES[use.elem].is_integer


def _is_bare(use: OperandUse) -> bool:
    return _is_integer(use) and not use.has_quant
