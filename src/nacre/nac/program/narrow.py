"""Operations as the format has room for them: concats of few tensors, constants of its types.

The signature of an instruction has a letter for each of its arguments, and at most 255 letters: the
length of a text of PERM is a byte. The axis is one of them. So concats of more tensors are concats
of concats. A constant of a type that the format does not have, as `i4`, is stored as one that holds
its values, and cast when it is loaded. The elements are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from nacre.core.module import CoreOperation, Labels, Module, State, TensorType
from nacre.core.values import Literal, Word, attributes
from nacre.nac.spec.elements import STORED_AS
from nacre.nac.spec.instructions import MOST_ARGUMENTS

_MOST_TENSORS = MOST_ARGUMENTS - 1  # and an axis


def narrow(module: Module) -> Module:
    """A module that has its elements in types of the format, and concats as narrow as they are."""
    if any(_has_too_many_operands(op) for op in module.operations):
        module = _ConcatSplitter(module).build()
    return with_stored_types(module)


def _has_too_many_operands(op: CoreOperation) -> bool:
    return op.opcode == "Concat" and len(op.operands) > _MOST_TENSORS


@dataclass
class _ConcatSplitter:
    """Puts concats of parts before the wide ones."""

    module: Module
    made: list[CoreOperation] = field(default_factory=list)

    def build(self) -> Module:
        """The whole of it."""
        for op in self.module.operations:
            self.made.append(self._narrow(op) if _has_too_many_operands(op) else op)
        return replace(self.module, operations=tuple(self.made))

    def _narrow(self, op: CoreOperation) -> CoreOperation:
        types = [self.module.by_id[value].type for value in op.operands]
        operands, axis = op.operands, op.attributes["axis"] % op.type.rank
        while len(operands) > _MOST_TENSORS:
            parts = [
                self._part(op, operands[low:high], _concat_type(types[low:high], axis))
                for low, high in _chunks(len(operands))
            ]
            operands, types = tuple(p.value_id for p in parts), [p.type for p in parts]
        return CoreOperation(op.value_id, op.opcode, operands, op.attributes, op.type)

    def _part(
        self, op: CoreOperation, operands: tuple[int, ...], type_: TensorType
    ) -> CoreOperation:
        # Every number that is not taken will do: arranging deals out others.
        value = -1 - len(self.made)
        part = CoreOperation(value, op.opcode, operands, op.attributes, type_)
        self.made.append(part)
        return part


def _concat_type(types: list[TensorType], axis: int) -> TensorType:
    first = types[0]
    size = sum(type_.shape[axis] for type_ in types)
    return TensorType(first.dtype, (*first.shape[:axis], size, *first.shape[axis + 1 :]))


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    """As few as will do, and all of nearly the same length."""
    parts = -(-count // _MOST_TENSORS)
    bounds = [count * at // parts for at in range(parts + 1)]
    yield from pairwise(bounds)


def with_stored_types(module: Module) -> Module:
    """The module with a cast behind each constant of a type that the format does not have.

    What a state starts as stays a constant: its record says the type.
    """
    used = {value for op in module.operations for value in op.operands}
    used |= {*module.outputs, *(state.output for state in module.states)}
    odd = [op for op in module.operations if op.value_id in used and _is_stored_wider(op)]
    if not odd:
        return module
    first = -1 - max((abs(op.value_id) for op in module.operations), default=0)
    casts = {op.value_id: first - 2 * at for at, op in enumerate(odd)}
    operations: list[CoreOperation] = []
    for op in module.operations:
        operands = tuple(casts.get(value, value) for value in op.operands)
        operations.append(CoreOperation(op.value_id, op.opcode, operands, op.attributes, op.type))
        if op.value_id in casts:
            operations += _stored_with_cast(op, casts[op.value_id])
    outputs = tuple(casts.get(value, value) for value in module.outputs)
    states = tuple(State(s.name, casts.get(s.output, s.output), s.initial) for s in module.states)
    moved = {value: cast - 1 for value, cast in casts.items()}
    labels = module.labels and _move_labels(module.labels, moved)
    return Module(tuple(operations), outputs, states, labels=labels)


def _is_stored_wider(op: CoreOperation) -> bool:
    return op.opcode == "ConstTensor" and op.type.dtype in STORED_AS


def _stored_with_cast(op: CoreOperation, cast: int) -> list[CoreOperation]:
    """A constant as it is stored, and the cast that gives its type back."""
    data = op.attributes["data"]
    assert isinstance(data, Literal)
    name, shape = STORED_AS[op.type.dtype], op.type.shape
    type_ = TensorType(name, shape)
    array = data.array.astype(type_.element.dtype)
    given = {"data": Literal(array), "dtype": Word(name), "shape": shape}
    return [
        CoreOperation(cast - 1, "ConstTensor", (), attributes(given), type_),
        CoreOperation(cast, "Cast", (cast - 1,), attributes({"to": Word(op.type.dtype)}), op.type),
    ]


def _move_labels(labels: Labels, values: Mapping[int, int]) -> Labels:
    """Names of constants that are now called after what is stored."""
    parameters = {values.get(value, value): names for value, names in labels.parameters.items()}
    nodes = {values.get(value, value): name for value, name in labels.nodes.items()}
    return replace(labels, parameters=parameters, nodes=nodes)
