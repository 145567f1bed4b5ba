"""The same elements in another order, or some of them: Reshape to Gather."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nacre.core.mlir.body import Body, Scalar
from nacre.core.mlir.site import Loop, MlirWriter, Value, operands_text
from nacre.core.mlir.types import INDEX, tensor_text
from nacre.core.module import Shape, TensorType
from nacre.core.unsupported import Unsupported

Group = tuple[list[int], list[int]]  # axes before, axes after


def reshape(site: MlirWriter) -> Value:
    """`Reshape`, `ExpandDims` and `Squeeze`: the declared shape says it all."""
    return reshape_value(site, site.operands[0], site.type.shape)


def reshape_value(site: MlirWriter, value: Value, shape: Shape) -> Value:
    """A tensor under another shape: axes collapsed, then others expanded, where there are any."""
    if value.type.shape == shape:
        return value
    target = TensorType(value.type.dtype, shape)
    if not value.type.rank:
        # Readers do not agree on how a scalar is expanded; a broadcast to ones is the same.
        operands = operands_text([value], site.empty(target))
        axes = ", ".join(map(str, range(target.rank)))
        return site.add("one", f"linalg.broadcast {operands} dimensions = [{axes}]", target)
    groups = axis_groups(value.type.shape, shape) if shape else []
    middle = tuple(prod(shape[axis] for axis in after) for _, after in groups)
    if middle != value.type.shape:
        value = _regroup(site, "collapse", value, middle, [before for before, _ in groups])
    if middle != shape:
        value = _regroup(site, "expand", value, shape, [after for _, after in groups])
    return value


def _regroup(
    site: MlirWriter, verb: str, value: Value, shape: Shape, groups: Sequence[Sequence[int]]
) -> Value:
    type_ = TensorType(value.type.dtype, shape)
    axes = ", ".join(f"[{', '.join(map(str, group))}]" for group in groups)
    sizes = f" output_shape [{', '.join(map(str, shape))}]" if verb == "expand" else ""
    types = f"{value.typed} into {tensor_text(type_)}"
    return site.add(verb, f"tensor.{verb}_shape {value.name} [{axes}]{sizes} : {types}", type_)


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


def transpose(site: MlirWriter) -> Value:
    """`linalg.transpose`."""
    (value,) = site.operands
    if not value.type.rank:
        return value
    operands = operands_text([value], site.empty(site.type))
    order = ", ".join(map(str, site.op.attributes["permutation"]))
    text = f"linalg.transpose {operands} permutation = [{order}]"
    return site.add("transposed", text, site.type)


def slice_(site: MlirWriter) -> Value:
    """`tensor.extract_slice`; starts are moved inside of the axes, the ends follow from the type.

    A step along an axis that has one element leads nowhere, and may be larger than MLIR's numbers.
    """
    (value,) = site.operands
    starts, steps = site.op.attributes["starts"], site.op.attributes["steps"]
    first = [max(start, 0) for start in starts]
    sizes = site.type.shape
    strides = [step if size > 1 else 1 for step, size in zip(steps, sizes, strict=True)]
    return _extract_slice(site, value, first, sizes, strides)


def index(site: MlirWriter) -> Value:
    """One element; Unsupported for one outside of the tensor, of which no run has a result."""
    (value,) = site.operands
    indices = site.op.attributes["indices"]
    for axis, (at, size) in enumerate(zip(indices, value.type.shape, strict=True)):
        if not 0 <= at < size:
            raise Unsupported(f"index {at} along axis {axis}, expected 0 to {size - 1}")
    ones = [1] * len(indices)
    return _extract_slice(site, value, indices, ones, ones)


def _extract_slice(
    site: MlirWriter,
    value: Value,
    starts: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
) -> Value:
    if not value.type.rank:
        return value
    parts = " ".join(f"[{', '.join(map(str, part))}]" for part in (starts, sizes, strides))
    types = f"{value.typed} to {tensor_text(site.type)}"
    return site.add("part", f"tensor.extract_slice {value.name}{parts} : {types}", site.type)


def gather(site: MlirWriter) -> Value:
    """Rows by index. An index outside is moved to the nearest row: MLIR has no error to raise."""
    table, indices = site.operands
    rank, inner = site.type.rank, indices.type.rank

    def code(body: Body, at: Scalar, _: Scalar) -> Scalar:
        row = body.convert("arith.index_cast", at, INDEX)
        row = body.of("arith.maxsi", row, body.constant(0, INDEX))
        row = body.of("arith.minsi", row, body.constant(table.type.shape[0] - 1, INDEX))
        places = [row, *(body.add(INDEX, f"linalg.index {a} : index") for a in range(inner, rank))]
        names = ", ".join(place.name for place in places)
        return body.add(table.type.dtype, f"tensor.extract {table.name}[{names}] : {table.typed}")

    output = (site.empty(site.type), tuple(range(rank)))
    loops: list[Loop] = ["parallel"] * rank
    return site.generic("rows", [(indices, tuple(range(inner)))], output, loops, code)
