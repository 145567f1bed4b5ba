"""Convolutions that are one step with what stands before and behind them.

A transposition before one is left to it, for it copies its input anyway. A function of each element
behind one is applied to a part of the result while that is in the cache. Bits are those of the
operations one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from nacre.core.constants import kernel_type
from nacre.core.evaluation.fusion import FusedStep, Weights
from nacre.core.evaluation.memory import OVERWRITING
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.kernels.interface.call import Call, Constant, Run
from nacre.kernels.registry import PRIMITIVES
from nacre.kernels.windows.graph_convolution import bind_arranged, is_arranged


class _Finder:
    """Looks for neighbours of convolutions that nobody else uses."""

    def __init__(self, module: Module) -> None:
        self.module = module
        users = [(operand, op) for op in module.operations for operand in op.operands]
        self._uses = Counter(operand for operand, _ in users)
        self._uses.update([*module.outputs, *(state.output for state in module.states)])
        self._user = dict(users)
        self.index = {op.value_id: at for at, op in enumerate(module.operations)}

    def before(self, op: CoreOperation) -> CoreOperation | None:
        """What moves the channels of its input from behind the batch to the end."""
        moved = self.module.by_id[op.operands[0]]
        rank = op.type.rank
        is_moved = moved.opcode == "Transpose" and moved.attributes["permutation"] == (
            (0, *range(2, rank), 1)
        )
        is_last = OPS[op.opcode].with_defaults(op.attributes)["layout"] == "NHWC"
        return moved if is_moved and is_last and self._uses[moved.value_id] == 1 else None

    def behind(self, op: CoreOperation) -> CoreOperation | None:
        """A function of each element of its result."""
        user = self._user.get(op.value_id)
        if user is None or self._uses[op.value_id] > 1 or user.opcode not in OVERWRITING:
            return None
        return user if len(user.operands) == 1 and user.type == op.type else None


def find_finished_steps(module: Module, weights: Weights) -> Iterator[FusedStep]:
    """The steps that convolutions and their neighbours come to."""
    convolutions = [op for op in module.operations if op.opcode == "Conv"]
    finder = _Finder(module) if convolutions else None
    for op in convolutions:
        assert finder is not None
        call = _call(module, op, weights)
        before, behind = finder.before(op), finder.behind(op)
        if (before is None and behind is None) or not is_arranged(call):
            continue
        x = op.operands[0] if before is None else before.operands[0]
        finish = None if behind is None else _function(behind)
        run = bind_arranged(call, finish, is_moved=before is not None)
        last = op if behind is None else behind
        gone = {part.value_id for part in (before, op) if part not in (None, last)}
        yield FusedStep(finder.index[last.value_id], (x, *op.operands[1:]),
                    {last.value_id: kernel_type(last.type)}, run, frozenset(gone))  # fmt: skip


def _call(module: Module, op: CoreOperation, weights: Weights) -> Call:
    constants = weights.constants
    known = {at: Constant(constants[v]) for at, v in enumerate(op.operands) if v in constants}
    types = tuple([kernel_type(module.by_id[value].type) for value in op.operands])
    attributes = OPS["Conv"].with_defaults(op.attributes)
    return Call(types, (kernel_type(op.type),), attributes, known=known)


def _function(op: CoreOperation) -> Run:
    spec, type_ = OPS[op.opcode], kernel_type(op.type)
    call = Call((type_,), (type_,), spec.with_defaults(op.attributes))
    return PRIMITIVES[spec.primitive or ""].bind(call)
