"""The form that a module has in a file: `lift(lower(m))` is the canonical form of m, to the bit.

Beyond Core IR's own canonical form, which leaves constants where they stand: Inputs come first, a
constant stands just before the operation that uses it first, equal constants are one unless they
are parameters of other names, attributes that say what is so anyway are left out, concats name no
more tensors than an instruction can, and values are numbered from 0 in order, as are calls that are
known by their names alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from nacre.core.canonical import canonicalise
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Labels, Module, State, TensorType
from nacre.core.opaque.calls import OPAQUE, call_key
from nacre.core.ops import OPS
from nacre.core.values import Array, Attributes, Literal, Word, attributes
from nacre.nac.program.array_keys import array_key
from nacre.nac.program.narrow import narrow

# A list left out stands for so many of these numbers.
_PLAIN_LISTS = {"strides": 1, "dilations": 1, "pads": 0, "output_padding": 0}


def canonical(module: Module) -> Module:
    """The form that a module has in a file; twice is the same as once."""
    return arrange(narrow(canonicalise(module, keep_parameters=True)))


def arrange(module: Module) -> Module:
    """The same for a module whose operations are as they should be."""
    return _CanonicalBuilder(module).build()


@dataclass
class _CanonicalBuilder:
    """Deals out places and numbers."""

    module: Module
    made: list[CoreOperation] = field(default_factory=list)
    _ids: dict[int, int] = field(default_factory=dict)
    _calls: dict[object, int] = field(default_factory=dict)  # that are known by their names
    _constants: dict[object, int] = field(default_factory=dict)
    _equal: dict[object, int] = field(default_factory=dict)  # the first of each, whatever its name

    def build(self) -> Module:
        """The whole of it."""
        source = self.module
        for op in source.inputs:
            self._append(op, op.attributes)
        for op in source.operations:
            if op.opcode != "Input" and constant_array(op) is None:
                self._append(op, self._attributes(op))
        states = tuple(State(s.name, self._id(s.output), s.initial) for s in source.states)
        outputs = tuple(self._id(value) for value in source.outputs)
        states = tuple(State(s.name, s.output, self._initial(s.initial)) for s in states)
        labels = self._labels(source.labels) if source.labels else None
        return Module(tuple(self.made), outputs, states, labels=labels)

    def _attributes(self, op: CoreOperation) -> Attributes:
        """Plain attributes; calls that are known by their names are counted in order."""
        given = plain_attributes(op)
        if op.opcode != OPAQUE:
            return given
        number = self._calls.setdefault(call_key(op), len(self._calls))
        return attributes({**given, "call": number})

    def _append(self, op: CoreOperation, given: Attributes) -> None:
        operands = tuple([self._id(value) for value in op.operands])
        value = self._ids[op.value_id] = len(self.made)
        self.made.append(CoreOperation(value, op.opcode, operands, given, op.type))

    def _id(self, value: int) -> int:
        """The new number of a value; a constant is placed now if it is nowhere yet."""
        if value not in self._ids:
            key = *self._key(value), self.module.parameter_names.get(value)
            if key not in self._constants:
                self._constants[key] = self._place_constant(value)
            self._ids[value] = self._constants[key]
        return self._ids[value]

    def _initial(self, value: int) -> int:
        """The same for what a state starts as: elements alone tell, as a file may have them."""
        key = self._key(value)
        if key not in self._equal:
            self._ids[value] = self._place_constant(value)
        return self._equal[key]

    def _key(self, value: int) -> tuple[str, object]:
        op = self.module.by_id[value]
        array = constant_array(op)
        assert array is not None
        return op.type.dtype, array_key(array)

    def _place_constant(self, value: int) -> int:
        op, place = self.module.by_id[value], len(self.made)
        array = constant_array(op)
        assert array is not None
        self._equal.setdefault(self._key(value), place)
        self.made.append(_constant(place, op.type, array))
        return place

    def _labels(self, labels: Labels) -> Labels:
        parameters = {
            self._ids[v]: names for v, names in labels.parameters.items() if v in self._ids
        }
        nodes = dict(self._named_values())
        return Labels(labels.outputs, nodes, parameters=parameters, fixed=labels.fixed)

    def _named_values(self) -> Iterator[tuple[int, str]]:
        assert self.module.labels is not None
        seen: set[int] = set()
        for value, name in sorted(self.module.labels.nodes.items()):
            new = self._ids.get(value)
            if new is not None and new not in seen:
                seen.add(new)
                yield new, name


def _constant(value: int, type_: TensorType, array: Array) -> CoreOperation:
    elements = array.astype(type_.element.dtype, copy=False)  # kernels have i4 in whole bytes
    given = {"data": Literal(elements), "dtype": Word(type_.dtype), "shape": type_.shape}
    return CoreOperation(value, "ConstTensor", (), attributes(given), type_)


def plain_attributes(op: CoreOperation) -> Attributes:
    """Attributes without those that say what is so anyway."""
    spec = OPS[op.opcode]
    kept = {}
    for name, value in op.attributes.items():
        attribute = spec.attribute(name)
        plain = _PLAIN_LISTS.get(name)
        is_said = attribute is None or attribute.is_required or value != attribute.default
        is_plain_list = plain is not None and not (attribute and attribute.is_required)
        if is_said and not (is_plain_list and set(value) <= {plain}):
            kept[name] = value
    return op.attributes if len(kept) == len(op.attributes) else attributes(kept)
