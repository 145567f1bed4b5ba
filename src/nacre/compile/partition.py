"""Third stage: operations gathered into layers, each of which runs tile by tile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from nacre.compile.geometry import Geometry, swap_of
from nacre.compile.legalise import Legal
from nacre.compile.lowerings import Kind, Lowering, lowering_of
from nacre.core.evaluation_plan import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Array


@dataclass(frozen=True, eq=False)
class Layer:
    """A product or a function of elements, and what is done to its result in place."""

    name: str
    kind: Kind
    op: CoreOperation
    epilogue: tuple[CoreOperation, ...]
    sources: tuple[int, ...]  # tensors that are read
    result: int  # the value of the last operation
    geometry: Geometry
    weights: Array | None = None  # [*w_inner, columns]
    bias: Array | None = None

    @property
    def operations(self) -> tuple[CoreOperation, ...]:
        """Everything that it computes, in order."""
        return (self.op, *self.epilogue)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes of the first operation, defaults filled in."""
        return OPS[self.op.opcode].filled(self.op.attributes)

    def __str__(self) -> str:
        done = ", ".join(f"{op.opcode} %{op.value_id}" for op in self.operations)
        read = ", ".join(f"%{source}" for source in self.sources)
        return f"{self.name}: {done} of {read}"


@dataclass(frozen=True, eq=False)
class Partition:
    """Layers in the order in which they run, and which tensor each value is."""

    legal: Legal
    layers: tuple[Layer, ...]
    tensors: Mapping[int, int]  # a view is the tensor that it shows

    def is_outside(self, tensor: int) -> bool:
        """Whether a tensor is an input or an output of the model."""
        module = self.legal.module
        is_input = module.by_id[tensor].opcode == "Input"
        return is_input or any(self.tensors[value] == tensor for value in module.outputs)

    def __str__(self) -> str:
        return "".join(f"{layer}\n" for layer in self.layers)


def partition(legal: Legal) -> Partition:
    """Layers: one for each product, with the functions of one operand that follow it."""
    gathering = _Gathering(legal.module)
    for op in legal.module.operations:
        row = lowering_of(op)
        if row is not None:
            gathering.take(op, row)
    return Partition(legal, tuple(map(_finished, gathering.drafts)), gathering.tensors)


@dataclass(eq=False)
class _Draft:
    name: str
    row: Lowering
    op: CoreOperation
    epilogue: list[CoreOperation]
    sources: tuple[int, ...]
    module: Module

    @property
    def result(self) -> int:
        return (self.epilogue[-1] if self.epilogue else self.op).value_id


class _Gathering:
    """Goes down the module and gathers."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.drafts: list[_Draft] = []
        self.tensors = {op.value_id: op.value_id for op in module.operations}
        self._makers: dict[int, _Draft] = {}
        self._uses = Counter(o for op in module.operations for o in op.operands)
        self._uses.update(module.outputs)

    def take(self, op: CoreOperation, row: Lowering) -> None:
        """One operation that has a form."""
        first = self.tensors[op.operands[0]]
        if row.kind == "view":
            self.tensors[op.value_id] = first
            return
        maker = self._makers.get(first)
        if maker is not None and row.kind == "map" and self._continues(op, maker):
            maker.epilogue.append(op)
            self._makers[op.value_id] = maker
            return
        read = op.operands if row.kind == "map" else op.operands[:1]
        sources = tuple(self.tensors[o] for o in read)
        name = f"{_word(op)}_{len(self.drafts)}"
        draft = _Draft(name, row, op, [], sources, self.module)
        self.drafts.append(draft)
        self._makers[op.value_id] = draft

    def _continues(self, op: CoreOperation, maker: _Draft) -> bool:
        """Whether an operation works on a result that nobody else wants: then in its place."""
        operand = op.operands[0]
        return len(op.operands) == 1 and maker.result == operand and self._uses[operand] == 1


def _word(op: CoreOperation) -> str:
    return re.sub(r"[^a-z0-9]", "", str(op.attributes.get("op", op.opcode)).lower())


def _finished(draft: _Draft) -> Layer:
    module, op = draft.module, draft.op
    weights = bias = None
    if draft.row.kind in ("linear", "window"):
        weights = constant_array(module.by_id[op.operands[1]])
        bias = constant_array(module.by_id[op.operands[2]]) if len(op.operands) > 2 else None
    if draft.row.kind == "linear" and weights is not None:
        weights = weights.T  # [in, out], as the product wants it
    return Layer(
        draft.name,
        draft.row.kind,
        op,
        tuple(draft.epilogue),
        draft.sources,
        draft.result,
        _OUTLINES[draft.row.kind](module, op),
        weights,
        bias,
    )


def _linear(module: Module, op: CoreOperation) -> Geometry:
    shape = module.by_id[op.operands[0]].type.shape
    rows = prod(shape[:-1])
    return Geometry(
        images=1,
        in_rows=rows,
        out_rows=rows,
        x_inner=shape[-1:],
        y_inner=op.type.shape[-1:],
        w_inner=shape[-1:],
        has_bias=len(op.operands) > 2,
        cuts_columns=True,
        element_bytes=op.type.element.bits // 8,
    )


def _window(module: Module, op: CoreOperation) -> Geometry:
    images, height, width, channels = module.by_id[op.operands[0]].type.shape
    kernel = module.by_id[op.operands[1]].type.shape
    filled = OPS[op.opcode].filled(op.attributes)
    strides, dilations = filled["strides"] or (1, 1), filled["dilations"] or (1, 1)
    return Geometry(
        images=images,
        in_rows=height,
        out_rows=op.type.shape[1],
        x_inner=(width, channels),
        y_inner=op.type.shape[2:],
        w_inner=kernel[:3],
        window=dilations[0] * (kernel[0] - 1) + 1,
        stride=strides[0],
        above=(filled["pads"] or (0,))[0],
        has_bias=len(op.operands) > 2,
        cuts_columns=filled["groups"] == 1,
        element_bytes=op.type.element.bits // 8,
    )


def _map(module: Module, op: CoreOperation) -> Geometry:
    shape = op.type.shape or (1,)
    return Geometry(
        images=1,
        in_rows=prod(shape[:-1]),
        out_rows=prod(shape[:-1]),
        x_inner=shape[-1:],
        y_inner=shape[-1:],
        sources=len(op.operands),
        element_bytes=op.type.element.bits // 8,
    )


def _turn(module: Module, op: CoreOperation) -> Geometry:
    shape = module.by_id[op.operands[0]].type.shape
    swap = swap_of(shape, op.attributes["permutation"])
    assert swap is not None  # others are not legal
    images, a, c, d = swap
    return Geometry(
        images=images,
        in_rows=c,
        out_rows=c,
        x_inner=(a * d,),
        y_inner=(a * d,),
        swap=(a, c, d),
        element_bytes=op.type.element.bits // 8,
    )


_OUTLINES = {"linear": _linear, "window": _window, "map": _map, "turn": _turn}
