"""The same elements in another order, or some of them: Reshape to Gather."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nacre.core.mlir.body import RegionBody, Scalar
from nacre.core.mlir.types import INDEX, tensor_text
from nacre.core.mlir.writer import Loop, MlirWriter, Value, operands_text
from nacre.core.module import Shape, TensorType
from nacre.core.unsupported import Unsupported

Group = tuple[list[int], list[int]]  # axes before, axes after


def reshape(writer: MlirWriter) -> Value:
    """`Reshape`, `ExpandDims` and `Squeeze`: the declared shape says it all."""
    return reshape_value(writer, writer.operands[0], writer.type.shape)


def reshape_value(writer: MlirWriter, value: Value, shape: Shape) -> Value:
    """A tensor under another shape: axes collapsed, then others expanded, where there are any."""
    if value.type.shape == shape:
        return value
    target = TensorType(value.type.dtype, shape)
    if not value.type.rank:
        # Readers do not agree on how a scalar is expanded; a broadcast to ones is the same.
        operands = operands_text([value], writer.empty(target))
        axes = ", ".join(map(str, range(target.rank)))
        return writer.add("one", f"linalg.broadcast {operands} dimensions = [{axes}]", target)
    groups = axis_groups(value.type.shape, shape) if shape else []
    middle = tuple(prod(shape[axis] for axis in after) for _, after in groups)
    if middle != value.type.shape:
        value = _regroup(writer, "collapse", value, middle, [before for before, _ in groups])
    if middle != shape:
        value = _regroup(writer, "expand", value, shape, [after for _, after in groups])
    return value


def _regroup(
    writer: MlirWriter, verb: str, value: Value, shape: Shape, groups: Sequence[Sequence[int]]
) -> Value:
    type_ = TensorType(value.type.dtype, shape)
    axes = ", ".join(f"[{', '.join(map(str, group))}]" for group in groups)
    sizes = f" output_shape [{', '.join(map(str, shape))}]" if verb == "expand" else ""
    types = f"{value.type_text} into {tensor_text(type_)}"
    return writer.add(verb, f"tensor.{verb}_shape {value.name} [{axes}]{sizes} : {types}", type_)


def axis_groups(before: Shape, after: Shape) -> list[Group]:
    """The smallest runs of axes that hold equally many elements; ones at the end join the last."""
    groups: list[Group] = []
    i = j = 0
    while i < len(before) and j < len(after):
        left, right, group = before[i], after[j], ([i], [j])
        while left != right:
            if left < right:
                i += 1
                left *= before[i]
                group[0].append(i)
            else:
                j += 1
                right *= after[j]
                group[1].append(j)
        groups.append(group)
        i, j = i + 1, j + 1
    groups[-1][0].extend(range(i, len(before)))
    groups[-1][1].extend(range(j, len(after)))
    return groups


def transpose(writer: MlirWriter) -> Value:
    """`linalg.transpose`."""
    (value,) = writer.operands
    if not value.type.rank:
        return value
    operands = operands_text([value], writer.empty(writer.type))
    order = ", ".join(map(str, writer.op.attributes["permutation"]))
    text = f"linalg.transpose {operands} permutation = [{order}]"
    return writer.add("transposed", text, writer.type)


def slice_(writer: MlirWriter) -> Value:
    """`tensor.extract_slice`; starts are moved inside of the axes, the ends follow from the type.

    A step along an axis that has one element leads nowhere, and may be larger than MLIR's numbers.
    """
    (value,) = writer.operands
    starts, steps = writer.op.attributes["starts"], writer.op.attributes["steps"]
    first = [max(start, 0) for start in starts]
    sizes = writer.type.shape
    strides = [step if size > 1 else 1 for step, size in zip(steps, sizes, strict=True)]
    return _extract_slice(writer, value, first, sizes, strides)


def index(writer: MlirWriter) -> Value:
    """One element; Unsupported for one outside of the tensor, of which no run has a result."""
    (value,) = writer.operands
    indices = writer.op.attributes["indices"]
    for axis, (at, size) in enumerate(zip(indices, value.type.shape, strict=True)):
        if not 0 <= at < size:
            raise Unsupported(f"index {at} along axis {axis}, expected 0 to {size - 1}")
    ones = [1] * len(indices)
    return _extract_slice(writer, value, indices, ones, ones)


def _extract_slice(
    writer: MlirWriter,
    value: Value,
    starts: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
) -> Value:
    if not value.type.rank:
        return value
    parts = " ".join(f"[{', '.join(map(str, part))}]" for part in (starts, sizes, strides))
    types = f"{value.type_text} to {tensor_text(writer.type)}"
    return writer.add("part", f"tensor.extract_slice {value.name}{parts} : {types}", writer.type)


def gather(writer: MlirWriter) -> Value:
    """Rows by index. An index outside is moved to the nearest row: MLIR has no error to raise."""
    table, indices = writer.operands
    rank, inner = writer.type.rank, indices.type.rank

    def code(body: RegionBody, at: Scalar, _: Scalar) -> Scalar:
        row = body.convert("arith.index_cast", at, INDEX)
        row = body.add_uniform("arith.maxsi", row, body.constant(0, INDEX))
        row = body.add_uniform("arith.minsi", row, body.constant(table.type.shape[0] - 1, INDEX))
        places = [row, *(body.add(INDEX, f"linalg.index {a} : index") for a in range(inner, rank))]
        names = ", ".join(place.name for place in places)
        return body.add(
            table.type.dtype, f"tensor.extract {table.name}[{names}] : {table.type_text}"
        )

    output = (writer.empty(writer.type), tuple(range(rank)))
    loops: list[Loop] = ["parallel"] * rank
    return writer.generic("rows", [(indices, tuple(range(inner)))], output, loops, code)
