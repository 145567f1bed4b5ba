"""Operations of ONNX that hold graphs: branches and loops, laid out flat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.base.excerpt import backquote
from nacre.core.importing.fallible import first_unknown
from nacre.core.importing.model_builder import MOST_ITERATIONS
from nacre.core.module import TensorType
from nacre.core.onnx.control.scopes import AlreadyReported, DataDependentLoop, LostTensor, Scope
from nacre.core.onnx.findings import BIND, Unsound
from nacre.core.onnx.handlers.slicing import select_index, stack
from nacre.core.onnx.interface import names_within
from nacre.core.onnx.onnx_node import OnnxNode, Tensor, describe_tensor
from nacre.core.onnx.reading.files import onnx
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_MOST_ELEMENTS = 1 << 24  # of known tensors that a loop collects, which are all held at once
_NEVER = (
    "Core IR has no axes of length 0: leave the loop out, and use its initial values,"
    " or declare the shape of the output in the body"
)
_FEWER = "run it fewer times: import the model for a shorter input, and carry the state"
_BY_DATA = "its condition is computed when the model runs, expected one that is known"
_FIXED = "run a fixed number of times, and choose with Where"
_SIZES = ("Shape", "Size")  # what these make does not depend on elements
_TRUE: Array = np.array(True)


def if_(node: OnnxNode, scope: Scope) -> list[Tensor]:
    """The branch of a known condition; else both, and of each output the one that is meant."""
    branches = (node.require("then_branch"), node.require("else_branch"))
    condition, builder = node.known(0), scope.builder
    count = prod(node.shape(0))
    if count != 1:
        raise Unsound(f"its condition has {count:,} elements, expected 1")
    # What follows from a parameter may be otherwise once that is trained.
    may_change = builder.keep_parameters and condition is not None and builder.is_derived(condition)
    if condition is None or may_change:
        return _both_branches(node, scope, branches)
    return scope.nested(branches[0 if _is_true(condition) else 1], ())


def _is_true(condition: Array) -> bool:
    if condition.size != 1:
        raise Unsound(f"its condition has {condition.size} elements, expected 1")
    return bool(condition.reshape(()))


def _both_branches(node: OnnxNode, scope: Scope, branches: Sequence[Any]) -> list[Tensor]:
    start = scope.builder.count
    condition = node.reshape(node.value(0), ())
    results: list[list[Tensor]] = []
    for branch, is_true in zip(branches, (True, False), strict=True):
        try:
            with scope.builder.branch(condition, is_true):
                results.append(scope.nested(branch, (), is_run=False))
        except AlreadyReported:
            continue
    if len(results) < len(branches):
        message = "its condition is computed when the model runs, and a branch has no form"
        raise Unsupported(message, BIND)
    unknown = first_unknown(scope.builder.operations_since(start))
    if unknown is not None:
        message = "its condition is computed when the model runs, so that both branches are needed"
        raise Unsupported(f"{message}, but `{unknown}` can fail where the other is meant", BIND)
    if len(results[0]) != len(results[1]):
        raise Unsound("its branches differ in the number of outputs")
    return [_select(node, condition, a, b) for a, b in zip(*results, strict=True)]


def _select(node: OnnxNode, condition: int, a: Tensor, b: Tensor) -> Tensor:
    types = node.type_of(a), node.type_of(b)
    if types[0] != types[1]:
        message = "its condition is computed when the model runs, and the branches give"
        raise Unsupported(
            f"{message} {describe_tensor(types[0])} and {describe_tensor(types[1])}", BIND
        )
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.tobytes() == b.tobytes():
        return a
    return node.add("Where", condition, node.materialise(a), node.materialise(b))


def loop(node: OnnxNode, scope: Scope) -> list[Tensor]:
    """The body as often as it runs; its trip count and its condition must be known."""
    body = node.require("body")
    most = _trip_count(node)
    goes_on = node.known(1) if node.has(1) else _TRUE
    state = [node.tensor(i) for i in range(2, node.count)]
    if len(body.output) < 1 + len(state):
        raise Unsound(f"its body has {len(body.output)} outputs, expected at least one more than"
                      f" the {len(state)} tensors that it carries")  # fmt: skip
    rows: list[Sequence[Tensor]] = []
    room = _MOST_ELEMENTS
    count = most if most is not None and _passes_condition_on(body) else 0
    if count > MOST_ITERATIONS and goes_on is not None and _is_true(goes_on):
        raise Unsupported(f"it runs {count} times, more than {MOST_ITERATIONS}", _FEWER)
    while most is None or len(rows) < most:
        if goes_on is None:
            raise DataDependentLoop(_BY_DATA, _FIXED)
        if not _is_true(goes_on):
            break
        if len(rows) == MOST_ITERATIONS:
            raise Unsupported(f"it runs more than {MOST_ITERATIONS} times", _FEWER)
        with scope.allowance.round_of(0 if rows else count):
            results = _body_results(body, scope, [np.array(len(rows), np.int64), _TRUE, *state])
        goes_on = results[0] if isinstance(results[0], np.ndarray) else None
        state = results[1 : 1 + len(state)]
        rows.append(results[1 + len(state) :])
        room = _remaining_elements(room, rows[-1])
    collected = body.output[1 + len(state) :]
    if not rows:
        types = scope.types_of(body, [np.array(0, np.int64), _TRUE, *state])
        more = None if types is None else types[1 + len(state) :]
        return [*state, *_empty_collections(collected, [0] * len(collected), more)]
    return [*state, *_stack_rounds(node, rows, collected, [0] * len(collected))]


def _body_results(body: Any, scope: Scope, given: Sequence[Tensor]) -> list[Tensor]:  # noqa: ANN401
    """What a body makes. If it has no form, that is not all: data may decide when the loop ends."""
    try:
        return scope.nested(body, given)
    except AlreadyReported as refused:
        if body.output and _is_condition_computed(body, refused.tensors):
            raise DataDependentLoop(_BY_DATA, _FIXED) from None
        raise


def _is_condition_computed(body: Any, tensors: Mapping[str, object]) -> bool:  # noqa: ANN401
    """Whether the condition that a body gives follows from elements that a run computes."""
    makers = {name: node for node in body.node for name in node.output if name}
    waiting, seen = [body.output[0].name], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if isinstance(tensors.get(name), int):
            return True
        maker = makers.get(name) if isinstance(tensors.get(name), LostTensor) else None
        if maker is not None and maker.op_type not in _SIZES:
            waiting += [*maker.input, *(n for a in maker.attribute for n in names_within(a))]
    return False


def _passes_condition_on(body: Any) -> bool:  # noqa: ANN401 - onnx.GraphProto
    """Whether a body hands on the condition that it is given, so that the trip count decides."""
    makers = {name: node for node in body.node for name in node.output}
    name = body.output[0].name
    for _ in body.node:  # no chain is longer
        maker = makers.get(name)
        if maker is None or maker.op_type != "Identity" or not maker.input:
            break
        name = maker.input[0]
    return len(body.input) > 1 and name == body.input[1].name and name not in makers


def _remaining_elements(room: int, row: Sequence[Tensor]) -> int:
    """How many known elements may still be collected after a round."""
    left = room - sum(tensor.size for tensor in row if isinstance(tensor, np.ndarray))
    if left < 0:
        raise Unsupported(f"it collects more than {_MOST_ELEMENTS:,} known elements", _FEWER)
    return left


def _trip_count(node: OnnxNode) -> int | None:
    """How often a loop runs at the most; None where only its condition ends it."""
    if not node.has(0):
        return None
    count = node.known(0)
    if count is None:
        message = "its trip count is computed when the model runs, expected a constant"
        raise Unsupported(message, BIND)
    if count.size != 1:
        raise Unsound(f"its trip count has {count.size} elements, expected 1")
    return max(int(count.reshape(())), 0)


def _stack_rounds(
    node: OnnxNode, rows: Sequence[Sequence[Tensor]], outputs: Sequence[Any], axes: Sequence[int]
) -> list[Tensor]:
    """What each round gave, stacked."""
    columns = list(zip(*rows, strict=True))
    stacked = []
    for column, output, axis in zip(columns, outputs, axes, strict=True):
        rank = len(node.type_of(column[0]).shape) + 1
        if not -rank <= axis < rank:
            raise Unsound(f"output `{output.name}` has {rank} axes, it is stacked along {axis}")
        stacked.append(stack(node, column, axis % rank))
    return stacked


def _empty_collections(
    outputs: Sequence[Any], axes: Sequence[int], types: Sequence[TensorType] | None
) -> list[Array]:
    """What no round at all collects: known tensors without elements, for others to fold.

    Their shapes are those that the body would make, else those that it declares.
    """
    empty = []
    for index, (output, axis) in enumerate(zip(outputs, axes, strict=True)):
        if types is not None:
            sizes, dtype = list(types[index].shape), types[index].element.dtype
        else:
            kind = output.type.tensor_type
            sizes = [dim.dim_value for dim in kind.shape.dim]
            if not kind.elem_type or not kind.HasField("shape") or any(s < 1 for s in sizes):
                reason = f"it never runs, so that {backquote(output.name)} has an axis of length 0"
                raise Unsupported(f"{reason}, and its body does not say the others", _NEVER)
            dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        sizes.insert(axis if axis >= 0 else axis + len(sizes) + 1, 0)
        empty.append(np.zeros(sizes, dtype))
    return empty


def scan(node: OnnxNode, scope: Scope) -> list[Tensor]:
    """The body for each index of some axes."""
    if node.opset >= 9:
        return _scan(node, scope, [node.tensor(i) for i in range(node.count)])
    if node.has(0):
        raise Unsupported(
            "`sequence_lens` is given", "run sequences of different lengths one by one"
        )
    tensors = [node.tensor(i) for i in range(1, node.count)]
    sizes = {node.type_of(tensor).shape[:1] for tensor in tensors}
    if len(sizes) != 1 or sizes == {()}:
        raise Unsound("its operands differ in the size of the batch")
    (batch,) = sizes.pop()
    if batch > MOST_ITERATIONS:
        raise Unsupported(f"it runs over a batch of {batch}, more than {MOST_ITERATIONS}", _FEWER)
    rows = [
        _scan(node, scope, [select_index(node, t, 0, i) for t in tensors]) for i in range(batch)
    ]
    return [stack(node, column, 0) for column in zip(*rows, strict=True)]


def _scan(node: OnnxNode, scope: Scope, tensors: Sequence[Tensor]) -> list[Tensor]:
    """The body over tensors without a batch: first those that it carries, then the sequences."""
    body, count = node.require("body"), int(node.require("num_scan_inputs"))
    if not 1 <= count <= len(tensors) or len(body.output) < len(tensors) - count:
        raise Unsound(f"`num_scan_inputs` is {count}, which does not fit operands and body")
    state, sequences = list(tensors[:-count]), tensors[-count:]
    axes = _axes(node, sequences)
    lengths = {node.type_of(t).shape[axis] for t, axis in zip(sequences, axes, strict=True)}
    if len(lengths) != 1:
        raise Unsound(f"its sequences have the lengths {sorted(lengths)}, expected one length")
    (length,) = lengths
    if length > MOST_ITERATIONS:
        raise Unsupported(f"it runs {length} times, more than {MOST_ITERATIONS}", _FEWER)
    backwards = _integers(node, ("scan_input_directions", "directions"), count)
    collected = body.output[len(state) :]
    rows: list[Sequence[Tensor]] = []
    room = _MOST_ELEMENTS
    for step in range(length):
        places = [length - 1 - step if is_back else step for is_back in backwards]
        taken = [
            select_index(node, t, a, i) for t, a, i in zip(sequences, axes, places, strict=True)
        ]
        with scope.allowance.round_of(0 if rows else length):
            results = scope.nested(body, [*state, *taken])
        state = results[: len(state)]
        rows.append(results[len(state) :])
        room = _remaining_elements(room, rows[-1])
    return [*state, *_results(node, rows, collected)]


def _results(
    node: OnnxNode, rows: Sequence[Sequence[Tensor]], collected: Sequence[Any]
) -> list[Tensor]:
    """What each round gave; an output that runs backwards puts new elements before the old."""
    directions = _integers(node, ("scan_output_directions",), len(collected))
    axes = _integers(node, ("scan_output_axes",), len(collected))
    if not rows:
        return list(_empty_collections(collected, axes, None))
    columns = list(zip(*rows, strict=True))
    turned_columns = [
        c[::-1] if is_back else c for c, is_back in zip(columns, directions, strict=True)
    ]
    return _stack_rounds(node, list(zip(*turned_columns, strict=True)), collected, axes)


def _axes(node: OnnxNode, sequences: Sequence[Tensor]) -> list[int]:
    axes = []
    given = _integers(node, ("scan_input_axes",), len(sequences))
    for axis, tensor in zip(given, sequences, strict=True):
        rank = len(node.type_of(tensor).shape)
        if not -rank <= axis < rank:
            raise Unsound(f"a sequence has {rank} axes, `scan_input_axes` names {axis}")
        axes.append(axis % rank)
    return axes


def _integers(node: OnnxNode, names: Sequence[str], count: int) -> tuple[int, ...]:
    """An attribute that versions call by different names; zeros where it is left out."""
    for name in names:
        integers = node.ints(name)
        if integers is not None:
            if len(integers) != count:
                raise Unsound(f"`{name}` has {len(integers)} elements, expected {count}")
            return integers
    return (0,) * count


# Operations that hold graphs, by name.
Control = Callable[[OnnxNode, Scope], list[Tensor]]
CONTROL: Mapping[str, Control] = MappingProxyType({"If": if_, "Loop": loop, "Scan": scan})
