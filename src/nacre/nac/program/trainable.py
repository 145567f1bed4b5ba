"""Which tensors that a file stores are parameters, which training changes, and which are fixed.

A file holds more floats than a model learns: buffers, running statistics of batch norms, literals
of the source, states at their start. The resource `nacre.training.json`, which other readers pass
over, has the names of those:

    {"fixed": ["bn.running_mean", "bn.running_var", "c3"]}

Whatever else a program loads is trained. PyTorch says which tensors are parameters. Other sources
do not, nor do files without the resource: there a constant is a parameter where it is used as one,
see `likely_parameters`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Array

TRAINING = "nacre.training.json"

_STATISTICS = ("running_mean", "running_var", ".mean", ".variance")  # ends of names
_INVENTED = re.compile(r"c[0-9]+(\.[0-9]+)?")  # what `lower` calls a constant without a name
# Operands with these names are learned, wherever an operation has them.
_LEARNED = frozenset({"weight", "filter", "bias", "scale", "slope"})
_SCALED = frozenset({"Quantize", "Dequantize"})  # their scale belongs to a number, not to a model
_PRODUCTS = frozenset({"MatMul", "Dot", "Einsum"})
_WITH_BIAS = frozenset({*_PRODUCTS, "Conv", "Conv2d", "ConvTranspose", "Linear"})
_TABLES = frozenset({"Gather", "GatherAxis"})
_MASKED = -1e4  # what is added to hide something is at most this


class TrainingRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The resource."""

    fixed: tuple[str, ...] = ()


def fixed_constants(module: Module) -> frozenset[int]:
    """The constants of a module that training leaves as they are, integers too."""
    constants = dict(_constants(module))
    labels = module.labels
    if labels is None or labels.fixed is None:
        return frozenset(constants) - likely_parameters(module)
    fixed, names = labels.fixed, module.parameter_names
    return frozenset(
        value
        for value in constants
        if value not in names or names[value][0] in fixed or not _is_float(module, value)
    )


def likely_parameters(module: Module) -> frozenset[int]:
    """The constants that are used as parameters are, where nobody says what they are.

    Those are weights, biases and scales of layers, tables that rows are taken from, and what is
    added to a product. A constant with a name may be any other operand of arithmetic too, if it has
    several elements. Statistics of batch norms, masks and what has no name beside others that have
    one are none.
    """
    return frozenset(_Search(module).constants())


def _constants(module: Module) -> Iterator[tuple[int, Array]]:
    for op in module.operations:
        array = constant_array(op)
        if array is not None:
            yield op.value_id, array


def _is_float(module: Module, value: int) -> bool:
    return module.by_id[value].type.element.kind == "float"


class _Search:
    """Goes back from the operations that use a model's weights to the constants these are."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._arrays = dict(_constants(module))
        self._named = {v for v in self._arrays if self._has_name(v)}
        self._varying: set[int] = set()  # what depends on an input
        for op in module.operations:
            if op.opcode == "Input" or any(value in self._varying for value in op.operands):
                self._varying.add(op.value_id)

    def _has_name(self, value: int) -> bool:
        names = self._module.parameter_names.get(value, ())
        return any(not _INVENTED.fullmatch(name) for name in names)

    def constants(self) -> set[int]:
        """Constants that a step of training may change."""
        learned: set[int] = set()
        for op in reversed(self._module.operations):
            if op.value_id in self._varying:
                learned.update(self._learned_operands(op))
            elif op.value_id in learned:  # computed from weights alone, as a transposed one
                learned.update(self._learned_sources(op))
        return {value for value in learned if self._is_candidate(value)}

    def _learned_sources(self, op: CoreOperation) -> Iterator[int]:
        """The operands of what is computed from constants, but for a state that starts as zeros."""
        for place, value in enumerate(op.operands):
            is_state = place == 0 and op.opcode in _WITH_BIAS and self._is_zero(value)
            if self._can_learn(value) and not is_state:
                yield value

    def _is_candidate(self, value: int) -> bool:
        """Whether a constant may be a parameter at all."""
        if value not in self._arrays or not _is_float(self._module, value):
            return False
        names = self._module.parameter_names.get(value, ())
        is_statistic = any(name.endswith(_STATISTICS) for name in names)
        return not is_statistic and (value in self._named or not self._named)

    def _can_learn(self, value: int) -> bool:
        return _is_float(self._module, value) and self._module.by_id[value].type.shape != ()

    def _learned_operands(self, op: CoreOperation) -> Iterator[int]:
        for place, value in enumerate(op.operands):
            if value not in self._varying and self._is_learned(op, place, value):
                yield value

    def _is_learned(self, op: CoreOperation, place: int, value: int) -> bool:
        """Whether an operand that follows from constants is one that models learn."""
        slots = OPS[op.opcode].operands
        if place < len(slots) and slots[place] in _LEARNED:
            return op.opcode not in _SCALED
        if op.opcode in _PRODUCTS:
            return self._can_learn(value)
        if op.opcode in _TABLES:
            return place == 0
        if op.opcode == "BinOp":
            return self._is_learned_term(op, place, value)
        return op.opcode in ("Concat", "Attention") and self._is_learned_part(op, place, value)

    def _is_learned_term(self, op: CoreOperation, place: int, value: int) -> bool:
        """Whether an operand of arithmetic is a bias, or may be a parameter that has a name."""
        word, other = str(op.attributes["op"]), self._module.by_id[op.operands[1 - place]]
        if word == "Add" and other.opcode in _WITH_BIAS and self._can_learn(value):
            return not self._is_mask(value)
        is_sum = word in ("Add", "Sub")
        return self._may_be_parameter(value) and (is_sum or not self._is_zero(value))

    def _is_learned_part(self, op: CoreOperation, place: int, value: int) -> bool:
        is_mask = op.opcode == "Attention" and place > 2
        return not is_mask and self._may_be_parameter(value) and not self._is_zero(value)

    def _may_be_parameter(self, value: int) -> bool:
        type_ = self._module.by_id[value].type
        is_single = all(size == 1 for size in type_.shape)
        return bool(self._named) and not is_single and not self._is_mask(value)

    def _is_mask(self, value: int) -> bool:
        array = self._arrays.get(value)
        return array is not None and bool(array.size) and not float(array.min()) > _MASKED

    def _is_zero(self, value: int) -> bool:
        array = self._arrays.get(value)
        return array is not None and not array.any()


def training_record(module: Module, names: Mapping[int, str]) -> TrainingRecord | None:
    """What a file says of the constants that it loads by these names; None where all are integers.

    A name stands for one constant, in whichever layout.
    """
    loaded = [value for value in names if _is_float(module, value)]
    fixed = fixed_constants(module)
    if not loaded:
        return None
    return TrainingRecord(tuple(sorted({names[value] for value in loaded if value in fixed})))
