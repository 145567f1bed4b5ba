"""A module made ready to run: verified, every operation bound, every value's last use known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from nacre.base.diagnostics import InputError, has_errors
from nacre.base.source import Span
from nacre.core.constants import constant_array, kernel_type
from nacre.core.evaluation.arrangement import arrange
from nacre.core.evaluation.axis_orders import ArrangedModule, keep_order
from nacre.core.evaluation.constants import stored_weights
from nacre.core.evaluation.finishing import find_finished_steps
from nacre.core.evaluation.fusion import FusedStep, Weights, find_fused_steps
from nacre.core.evaluation.lifetimes import layout_of_values, require_affordable_peak
from nacre.core.evaluation.memory import OVERWRITING
from nacre.core.evaluation.run import Plan, operation_span, refusal
from nacre.core.evaluation.views import dense_views
from nacre.core.evaluation.workspace import Step
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.opaque.calls import why_opaque
from nacre.core.ops import OPS, OpSpec
from nacre.core.rules.module_rules import MOD15
from nacre.core.values import Array
from nacre.core.verify import verify
from nacre.kernels.interface.call import Call, Constant, Run
from nacre.kernels.interface.call import TensorType as KernelType
from nacre.kernels.registry import PRIMITIVES


def make_plan(module: Module, ordered: bool) -> Plan:
    """A module ready to run; InputError has the findings of the verifier if it is none."""
    found = verify(module, "nacre-1")
    if has_errors(found):
        raise InputError(found)
    peak = require_affordable_peak(module, _types(module))
    arranged = keep_order(module) if ordered else arrange(module)
    constants = {
        op.value_id: array
        for op in arranged.module.operations
        for array in (constant_array(op),)
        if array is not None
    }
    stored = stored_weights(arranged.module, constants)
    if stored:
        peak = require_affordable_peak(module, _types(module), stored)
    constants |= {value: known.stored for value, known in stored.items()}
    zeros = {value: known.zero for value, known in stored.items()}
    weights = Weights(constants, zeros, _hot(arranged.module, constants))
    return _plan(arranged, weights, peak, ordered)


def _types(module: Module) -> dict[int, KernelType]:
    known = {type_: kernel_type(type_) for type_ in {op.type for op in module.operations}}
    return {op.value_id: known[op.type] for op in module.operations}


def _plan(arranged: ArrangedModule, weights: Weights, peak: int, ordered: bool) -> Plan:
    module, types, constants = arranged.module, _types(arranged.module), weights.constants
    kept = {*module.outputs, *(state.output for state in module.states)}
    # What is new in every run cannot be looked into ahead of it.
    views = dense_views(module, {*constants, *kept, *(op.value_id for op in module.inputs)})
    # In order, kernels take other ways, which may read an operand again.
    fused = [] if ordered else [*find_fused_steps(module, weights),
                                *find_finished_steps(module, weights)]  # fmt: skip
    bind = _Binder(arranged, types, weights, ordered)
    steps = tuple(_steps(arranged, fused, {*constants, *views}, bind))
    leaving = {
        value: (step.index, type_)
        for step in steps
        for value, type_ in zip(step.results, step.types, strict=True)
        if value in kept
    }
    seen = {value: types[value] for value in views}
    layout = layout_of_values(steps, views, kept, types)
    fixed = {value: constants[value] for value in kept if value in constants}
    return Plan(arranged.source, dict(constants), steps, peak, layout, seen, leaving, fixed)


def _steps(
    arranged: ArrangedModule, fused: Iterable[FusedStep], ready: Collection[int], bind: _Binder
) -> Iterable[Step]:
    """What is to be computed, in order; some values are there without."""
    by_index = {one.index: one for one in fused}
    covered = {value for one in by_index.values() for value in (*one.results, *one.left_out)}
    for index, op in enumerate(arranged.module.operations):
        one, origin = by_index.get(index), arranged.origins[index]
        if one is not None:
            made = tuple(one.results), tuple(one.results.values())
            yield Step(origin, one.operands, *made, one.run, one.in_place_operands)
        elif op.opcode != "Input" and op.value_id not in ready and op.value_id not in covered:
            yield bind(origin, op)


def _in_place_operands(by_id: Mapping[int, CoreOperation], op: CoreOperation) -> tuple[int, ...]:
    """The operands over which an operation may write its result."""
    if op.opcode not in OVERWRITING:
        return ()
    return tuple([operand for operand in op.operands if by_id[operand].type == op.type])


class _Binder:
    """Binds operations; those that look alike are bound once."""

    def __init__(
        self,
        arranged: ArrangedModule,
        types: dict[int, KernelType],
        weights: Weights,
        ordered: bool,
    ) -> None:
        self._source = arranged.source
        self._module = arranged.module
        self._types = types
        self._weights = weights
        self._ordered = ordered
        self._bound: dict[object, Run] = {}

    def __call__(self, index: int, op: CoreOperation) -> Step:
        """The step of an operation."""
        in_place_operands = () if self._ordered else _in_place_operands(self._module.by_id, op)
        value, type_ = op.value_id, self._types[op.value_id]
        return Step(index, op.operands, (value,), (type_,), self._run(index, op), in_place_operands)

    def _run(self, index: int, op: CoreOperation) -> Run:
        spec = OPS[op.opcode]
        by_id = self._module.by_id
        operands = tuple([by_id[operand].type for operand in op.operands])
        # As keys 0.0 and -0.0 are equal, which some operations tell apart.
        exact = repr(op.attributes) if _has_floats(spec) else None
        known = self._known(op, spec)
        values = tuple([op.operands[at] for at in known])
        key = (op.opcode, operands, op.attributes, op.type, exact, values)
        found = self._bound.get(key)
        if found is None:
            found = self._bound[key] = self._bind(index, op, spec, known)
        return found

    def _known(self, op: CoreOperation, spec: OpSpec) -> dict[int, Constant]:
        """The operands that are constants, for a kernel that prepares them."""
        if spec.primitive is None or not PRIMITIVES[spec.primitive].takes_known:
            return {}
        weights = self._weights
        return {
            at: Constant(
                weights.constants[value], value in weights.widened, weights.zeros.get(value)
            )
            for at, value in enumerate(op.operands)
            if value in weights.constants
        }

    def _bind(self, index: int, op: CoreOperation, spec: OpSpec, known: dict[int, Constant]) -> Run:
        if spec.primitive is None:
            raise refusal(self._source, index, why_opaque(op) or "there is no kernel for it")
        inputs = tuple([self._types[operand] for operand in op.operands])
        result, attributes = self._types[op.value_id], spec.with_defaults(op.attributes)
        call = Call(inputs, (result,), attributes, self._ordered, known)
        try:
            return PRIMITIVES[spec.primitive].bind(call)
        except (ValueError, TypeError) as error:
            raise refusal(self._source, index, str(error)) from error


def _hot(module: Module, constants: Mapping[int, Array]) -> frozenset[int]:
    """Integers that are kept as floats for the products that take them.

    Together they may take as much memory again as all constants have values of a byte; what several
    products take goes first, then what is small.
    """
    uses = Counter(
        operand
        for op in module.operations
        for operand in op.operands
        if operand in constants and constants[operand].dtype.kind in "iu"
    )
    left = sum(array.size for array in {id(a): a for a in constants.values()}.values())
    found = set[int]()
    for value in sorted(uses, key=lambda value: (-uses[value], constants[value].size)):
        bytes_ = 4 * constants[value].size
        if bytes_ <= left:
            left -= bytes_
            found.add(value)
    return frozenset(found)


def _has_floats(spec: OpSpec) -> bool:
    return any(a.kind in ("float", "floats") for a in spec.attributes)


def macs_of(op: CoreOperation, module: Module) -> int:
    """Multiplications with an addition that an operation takes: one count for every verb."""
    spec = OPS[op.opcode]
    if spec.primitive is None:
        return 0
    given = {a.name: a.default for a in spec.attributes if a.default is not None}
    inputs = tuple(kernel_type(module.by_id[operand].type) for operand in op.operands)
    call = Call(inputs, (kernel_type(op.type),), {**given, **op.attributes})
    return PRIMITIVES[spec.primitive].work(call).macs


def to_declared(array: Array, type_: TensorType) -> Array:
    """A copy of an array in the element type that was declared."""
    return np.array(array, dtype=type_.element.dtype)


def initial_values(module: Module) -> dict[str, Array]:
    """What every state starts as, by the name of its input."""
    found: dict[str, Array] = {}
    for index, state in enumerate(module.states):
        value = constant_array(module.by_id[state.initial])
        if value is None:
            message = f"the initial value %{state.initial} of state `{state.name}` is no constant"
            raise InputError([MOD15.at(_state_span(module, index), message)])
        found[state.name] = value
    return found


def _state_span(module: Module, index: int) -> Span:
    spans = module.source_spans
    if spans is not None and index < len(spans.states):
        return spans.source.span(*spans.states[index])
    return operation_span(module, len(module.operations))
