"""Calls that hold graphs: branches and loops, laid out flat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from nacre.core.aten.call import AtenCall, Value
from nacre.core.aten.catalogue import handlers
from nacre.core.aten.refusals import LOOP
from nacre.core.importing.fallible import first_unknown
from nacre.core.importing.model_builder import MOST_ITERATIONS, ModelBuilder
from nacre.core.torch.constants import Constants
from nacre.core.torch.library import torch
from nacre.core.torch.nodes import argument
from nacre.core.unsupported import Unsupported

Tensor = Any  # a value of the module, or a tensor of PyTorch that is known
Graph = Any  # torch.fx.GraphModule
Nested = Callable[[Graph, Sequence[Tensor]], list[Tensor]]

_WHERE = "compute both and choose by `torch.where`"
_FEWER = "run it fewer times: export the model for a shorter input, and carry the state"


class AlreadyReported(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A graph has a node without a form, which has been reported."""


@dataclass(frozen=True)
class RegionCall:
    """What handlers of such calls work with."""

    nested: Nested  # what a graph gives for some tensors; AlreadyReported where it has no form
    builder: ModelBuilder
    constants: Constants

    def aten(self, key: str, arguments: Mapping[str, Any]) -> Tensor:
        """What a call of ATen becomes."""
        given = {name: argument(part, self.constants) for name, part in arguments.items()}
        made = handlers()[key](AtenCall(key, given, self.builder))
        assert isinstance(made, int)
        return Value(made)

    def slice_at(self, tensor: Tensor, index: int) -> Tensor:
        """One index of the first axis."""
        if not isinstance(tensor, Value):
            return tensor[index]
        return self.aten("select.int", {"self": tensor, "dim": 0, "index": index})

    def stack(self, tensors: Sequence[Tensor]) -> Tensor:
        """Tensors along a new first axis."""
        if any(isinstance(tensor, Value) for tensor in tensors):
            return self.aten("stack.default", {"tensors": tuple(tensors), "dim": 0})
        return torch().stack(tuple(tensors))

    def length(self, tensors: Sequence[Tensor]) -> int:
        """How many indices the first axis has; Unsupported where nobody would unroll them."""
        shapes = (
            self.builder.type_of(t.id).shape if isinstance(t, Value) else tuple(t.shape)
            for t in tensors
        )
        length = int(next(shapes)[0])
        if not 1 <= length <= MOST_ITERATIONS:
            raise Unsupported(f"it runs {length} times, expected 1 to {MOST_ITERATIONS}", _FEWER)
        return length


def cond(
    call: RegionCall, predicate: Tensor, true: Graph, false: Graph, operands: Sequence[Tensor] = ()
) -> list[Tensor]:
    """The branch of a known predicate; else both, and of each output the one that is meant.

    A predicate that follows from a parameter may be otherwise once that is trained.
    """
    tensor, keeps = torch().Tensor, call.builder.keep_parameters
    if keeps and isinstance(predicate, tensor) and call.constants.is_derived(predicate):
        predicate = Value(call.constants.value(predicate))
    if not isinstance(predicate, Value):
        return call.nested(true if bool(predicate) else false, operands)
    start = call.builder.count
    condition = call.aten("view.default", {"self": predicate, "size": ()})
    results = []
    for branch, is_true in ((true, True), (false, False)):
        with suppress(AlreadyReported), call.builder.branch(condition.id, is_true):
            results.append(call.nested(branch, operands))
    if len(results) < 2:
        raise AlreadyReported
    unknown = first_unknown(call.builder.operations_since(start))
    if unknown is not None:
        reason = f"both branches are computed, and `{unknown}` can fail where the other is meant"
        raise Unsupported(reason, _WHERE)
    return [_choose(call, condition, a, b) for a, b in zip(*results, strict=True)]


def _choose(call: RegionCall, condition: Tensor, true: Tensor, false: Tensor) -> Tensor:
    tensor = torch().Tensor
    if isinstance(true, Value | tensor) and isinstance(false, Value | tensor):
        if isinstance(true, Value) and true == false:
            return true
        chosen = {"condition": condition, "self": true, "other": false}
        return call.aten("where.self", chosen)
    if true == false:  # nothing at all, or a number
        return true
    raise Unsupported("its branches give different numbers", "give them as tensors")


def while_loop(
    call: RegionCall,
    condition: Graph,
    body: Graph,
    carried: Sequence[Tensor],
    others: Sequence[Tensor] = (),
) -> list[Tensor]:
    """The body as often as it runs, which must follow from what is known."""
    state = list(carried)
    for _ in range(MOST_ITERATIONS + 1):
        (goes_on,) = call.nested(condition, [*state, *others])
        if isinstance(goes_on, Value):
            raise Unsupported(*LOOP)
        if not bool(goes_on):
            return state
        state = call.nested(body, [*state, *others])
    raise Unsupported(f"it runs more than {MOST_ITERATIONS} times", _FEWER)


def scan(
    call: RegionCall,
    body: Graph,
    carried: Sequence[Tensor],
    sequences: Sequence[Tensor],
    others: Sequence[Tensor] = (),
) -> list[Tensor]:
    """The body for each index of the first axis: the last state, and what each round gave."""
    state, rows = list(carried), []
    for index in range(call.length(sequences)):
        given = [*state, *(call.slice_at(t, index) for t in sequences), *others]
        results = call.nested(body, given)
        state = results[: len(state)]
        rows.append(results[len(state) :])
    return [*state, *_stack_rows(call, rows)]


def associative_scan(
    call: RegionCall, body: Graph, sequences: Sequence[Tensor], others: Sequence[Tensor] = ()
) -> list[Tensor]:
    """The body of what came before and each index of the first axis."""
    rows = [[call.slice_at(t, 0) for t in sequences]]
    for index in range(1, call.length(sequences)):
        given = [*rows[-1], *(call.slice_at(t, index) for t in sequences), *others]
        rows.append(call.nested(body, given))
    return list(_stack_rows(call, rows))


def map_(
    call: RegionCall, body: Graph, sequences: Sequence[Tensor], others: Sequence[Tensor] = ()
) -> list[Tensor]:
    """The body for each index of the first axis."""
    return scan(call, body, (), sequences, others)


def _stack_rows(call: RegionCall, rows: Sequence[Sequence[Tensor]]) -> Iterator[Tensor]:
    return (call.stack(column) for column in zip(*rows, strict=True))


# Calls that hold graphs, by name.
REGIONS: Mapping[str, Callable[..., list[Tensor]]] = MappingProxyType(
    {
        "cond": cond,
        "while_loop": while_loop,
        "scan": scan,
        "associative_scan": associative_scan,
        "map_impl": map_,
    }
)
