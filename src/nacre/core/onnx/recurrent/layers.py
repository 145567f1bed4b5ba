"""LSTM, GRU and RNN: laid out step by step, the product of all inputs with weights in one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import NOT_EMPTY, Unsound
from nacre.core.onnx.handlers.slicing import concatenate_tensors, select_index, slice_tensor, stack
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.onnx.recurrent.cells import (
    Cell,
    Function,
    State,
    Step,
    Weights,
    activation_functions,
    gru,
    lstm,
    rnn,
)
from nacre.core.onnx.tensors import combine, transpose, with_shape
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

MOST_STEPS = 4096


class Kind(Struct, frozen=True):
    """A kind of layer."""

    step: Step
    gates: int
    activations: tuple[str, ...]
    products: tuple[int, ...]  # how many gates share each product with the state
    states: int = 1


RECURRENT: Mapping[str, Kind] = MappingProxyType(
    {
        "RNN": Kind(rnn, 1, ("Tanh",), (1,)),
        "GRU": Kind(gru, 3, ("Sigmoid", "Tanh"), (2, 1)),
        "LSTM": Kind(lstm, 4, ("Sigmoid", "Tanh", "Tanh"), (4,), states=2),
    }
)
# Whether each direction runs backwards.
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
# Operands.
_BIAS, _LENGTHS, _STATES, _PEEPHOLES = 3, 4, 5, 7


class Sizes(Struct, frozen=True):
    """The sizes that all operands share."""

    steps: int
    batch: int
    inputs: int
    hidden: int
    directions: int


# The weights of an operand and a direction.
WeightsOf = Callable[[int, int], Weights]


@handles("LSTM", "GRU", "RNN")
def recurrent(node: OnnxNode) -> list[Tensor]:
    """A layer with floats as weights."""
    kind = RECURRENT[node.op]
    sizes = sizes_of(node)
    rows = kind.gates * sizes.hidden
    expect_shape(node, 1, (sizes.directions, rows, sizes.inputs))
    expect_shape(node, 2, (sizes.directions, rows, sizes.hidden))
    held = {index: learned_tensor(node, index) for index in (1, 2)}
    return layer(
        node, kind, sizes, lambda i, direction: Weights(select_index(node, held[i], 0, direction))
    )


def learned_tensor(node: OnnxNode, index: int) -> Tensor:
    """An operand; one that follows from parameters is computed before anything is cut from it."""
    known, builder = node.known(index), node.builder
    is_computed = known is not None and builder.keep_parameters and builder.is_derived(known)
    return node.value(index) if is_computed else node.tensor(index)


def sizes_of(node: OnnxNode) -> Sizes:
    """The sizes, from the input and the weights of the state."""
    dims = node.shape(0)
    if len(dims) != 3:
        raise Unsound(f"its input has {len(dims)} axes, expected 3")
    batch, steps = dims[:2] if node.attribute("layout", 0) else dims[1::-1]
    if 0 in dims:
        raise Unsupported("its input has no elements", NOT_EMPTY)
    if steps > MOST_STEPS:
        reason = f"it runs over {steps} steps, more than the {MOST_STEPS} that are unrolled"
        raise Unsupported(reason, "import the model for a shorter sequence, and carry the state")
    hidden = int(node.attribute("hidden_size", 0)) or (node.shape(2) or (0,))[-1]
    return Sizes(steps, batch, dims[2], hidden, len(_DIRECTIONS[_direction(node)]))


def _direction(node: OnnxNode) -> str:
    found = node.attribute("direction", "forward")
    if found not in _DIRECTIONS:
        raise Unsound(
            f"`direction` is {backquote(found)}, expected one of {', '.join(_DIRECTIONS)}"
        )
    return str(found)


def expect_shape(node: OnnxNode, index: int, shape: tuple[int, ...]) -> None:
    """Refuse an operand of another shape."""
    if node.shape(index) != shape:
        found = list(node.shape(index))
        raise Unsound(f"operand {index} has the shape {found}, expected {list(shape)}")


def layer(node: OnnxNode, kind: Kind, sizes: Sizes, weights_of: WeightsOf) -> list[Tensor]:
    """All directions: every step, and the last state."""
    count = len(kind.activations)
    names = node.attribute("activations", kind.activations * sizes.directions)
    if len(names) != count * sizes.directions:
        expected = count * sizes.directions
        raise Unsound(f"it has {len(names)} activations, expected {expected}")
    applied = activation_functions(node, names, count, _clip(node))
    is_batch_first = bool(node.attribute("layout", 0))
    x = transpose(node, node.tensor(0), (1, 0, 2)) if is_batch_first else node.tensor(0)
    rows = node.materialise(with_shape(node, x, (sizes.steps * sizes.batch, sizes.inputs)))
    lengths = lengths_of(node, sizes)
    runs = []
    for direction, is_back in enumerate(_DIRECTIONS[_direction(node)]):
        own = applied[direction * count : (direction + 1) * count]
        one = _Direction(node, kind, sizes, direction, own, lengths, weights_of)
        runs.append(one.run(rows, is_back=is_back))
    return _outputs(node, kind, sizes, runs)


def _clip(node: OnnxNode) -> float:
    """The bound on what goes into activations; 0 for none."""
    found = float(node.attribute("clip", 0.0))
    if found < 0 or (found == 0 and "clip" in node.attributes):
        raise Unsound(f"`clip` is {found}, expected more than 0")
    return found


def lengths_of(node: OnnxNode, sizes: Sizes) -> Tensor | None:
    """How many steps each sequence has, [batch, 1]; None where it is all of them."""
    if not node.has(_LENGTHS):
        return None
    expect_shape(node, _LENGTHS, (sizes.batch,))
    known = node.known(_LENGTHS)
    if known is None:
        return node.reshape(node.value(_LENGTHS), (sizes.batch, 1))
    if known.min() < 0 or known.max() > sizes.steps:
        shown = known.tolist()[:8]
        raise Unsound(f"`sequence_lens` begins with {shown}, expected 0 to {sizes.steps}")
    return None if known.min() == sizes.steps else known.reshape(sizes.batch, 1)


class _Direction(Struct, frozen=True):
    """One direction of a layer."""

    node: OnnxNode
    kind: Kind
    sizes: Sizes
    index: int
    functions: Sequence[Function]
    lengths: Tensor | None
    weights_of: WeightsOf

    def run(self, rows: int, *, is_back: bool) -> tuple[list[Tensor], State]:
        """What every step gives, in the order of the input, and the last state."""
        node, batch = self.node, self.sizes.batch
        bias, candidate_bias = self._biases()
        cell = self._cell(candidate_bias)
        ready = self.weights_of(1, self.index).times(node, rows, bias)
        state = self._initial()
        zero: Array = np.zeros((batch, self.sizes.hidden), self._dtype())
        given: list[Tensor] = [zero] * self.sizes.steps
        for step in reversed(range(self.sizes.steps)) if is_back else range(self.sizes.steps):
            mask = self._mask(step)
            if isinstance(mask, np.ndarray) and not mask.any():
                continue  # no sequence is as long: nothing is given, the state stays
            x = node.materialise(slice_tensor(node, ready, 0, step * batch, (step + 1) * batch))
            outputs = self.kind.step(cell, x, state)
            if mask is None or (isinstance(mask, np.ndarray) and mask.all()):
                state, given[step] = outputs, outputs[0]
                continue
            is_on = node.materialise(mask)
            given[step] = node.add("Where", is_on, outputs[0], node.materialise(zero))
            pairs = zip(outputs, state, strict=True)
            state = tuple(node.add("Where", is_on, new, old) for new, old in pairs)
        return given, self._final_state(state)

    def _final_state(self, state: State) -> State:
        """The last state; that of a sequence without steps is 0, as onnxruntime has it."""
        node, lengths = self.node, self.lengths
        if lengths is None or (isinstance(lengths, np.ndarray) and lengths.min() > 0):
            return state
        mask = self._mask(0)
        assert mask is not None
        zero: Array = np.zeros((), self._dtype())
        values = node.materialise(mask), node.materialise(zero)
        return tuple(node.add("Where", values[0], value, values[1]) for value in state)

    def _dtype(self) -> np.dtype[np.generic]:
        return GRAPH_TYPES[self.node.type(0).dtype].dtype

    def _mask(self, step: int) -> Tensor | None:
        """Which sequences have this step, [batch, 1]; None where all have."""
        if self.lengths is None or isinstance(self.lengths, np.ndarray):
            return None if self.lengths is None else self.lengths > step
        now = self.node.scalar(step, self.node.type_of(self.lengths).dtype)
        return self.node.add("Compare", self.lengths, now, op="Gt")

    def _biases(self) -> tuple[Tensor | None, Tensor | None]:
        """The bias of the product with the input, and what a late reset keeps apart from it."""
        node, size = self.node, self.sizes.hidden
        if not node.has(_BIAS):
            return None, None
        every = self.kind.gates * size
        expect_shape(node, _BIAS, (self.sizes.directions, 2 * every))
        own = select_index(node, learned_tensor(node, _BIAS), 0, self.index)
        if node.builder.keep_parameters and isinstance(own, np.ndarray):
            own = node.constant(own)  # a parameter, of which the module computes the sum
        first, second = (
            slice_tensor(node, own, 0, 0, every),
            slice_tensor(node, own, 0, every, 2 * every),
        )
        if not self._resets_after_product():
            return combine(node, "Add", first, second), None
        kept = slice_tensor(node, second, 0, 2 * size, every)
        nothing: Array = np.zeros(size, self._dtype())
        second = concatenate_tensors(node, [slice_tensor(node, second, 0, 0, 2 * size), nothing], 0)
        return combine(node, "Add", first, second), kept

    def _resets_after_product(self) -> bool:
        return self.kind.step is gru and bool(self.node.attribute("linear_before_reset", 0))

    def _cell(self, candidate_bias: Tensor | None) -> Cell:
        node, hidden = self.node, self.sizes.hidden
        whole, parts, start = self.weights_of(2, self.index), [], 0
        for gates in self.kind.products:
            parts.append(whole.slice_rows(node, start, start + gates * hidden))
            start += gates * hidden
        return Cell(
            node,
            hidden,
            self.functions,
            parts,
            candidate_bias,
            self._peepholes(),
            bool(node.attribute("input_forget", 0)),
            self._resets_after_product(),
        )

    def _peepholes(self) -> tuple[int, ...]:
        node, hidden = self.node, self.sizes.hidden
        if self.kind.step is not lstm or not node.has(_PEEPHOLES):
            return ()
        expect_shape(node, _PEEPHOLES, (self.sizes.directions, 3 * hidden))
        own = select_index(node, learned_tensor(node, _PEEPHOLES), 0, self.index)
        parts = [slice_tensor(node, own, 0, at * hidden, (at + 1) * hidden) for at in range(3)]
        return tuple(node.materialise(found) for found in parts)

    def _initial(self) -> State:
        """The state before the first step: zeros where it is not given."""
        node, sizes = self.node, self.sizes
        axis = 1 if node.attribute("layout", 0) else 0
        states: list[int] = []
        for index in range(_STATES, _STATES + self.kind.states):
            if not node.has(index):
                zeros: Array = np.zeros((sizes.batch, sizes.hidden), self._dtype())
                states.append(node.materialise(zeros))
                continue
            outer = (sizes.batch, sizes.directions) if axis else (sizes.directions, sizes.batch)
            expect_shape(node, index, (*outer, sizes.hidden))
            states.append(
                node.materialise(select_index(node, node.tensor(index), axis, self.index))
            )
        return tuple(states)


def _outputs(
    node: OnnxNode, kind: Kind, sizes: Sizes, runs: Sequence[tuple[list[Tensor], State]]
) -> list[Tensor]:
    """Every step [steps, directions, batch, hidden], then each state; or with the batch first."""
    is_batch_first = bool(node.attribute("layout", 0))
    outputs: list[Tensor] = [np.zeros(0)]  # not asked for
    if node.outputs[0]:
        shape = (sizes.steps, 1, sizes.batch, sizes.hidden)
        parts = [with_shape(node, concatenate_tensors(node, given, 0), shape) for given, _ in runs]
        every = concatenate_tensors(node, parts, 1)
        outputs = [transpose(node, every, (2, 0, 1, 3)) if is_batch_first else every]
    for index in range(kind.states):
        last = stack(node, [state[index] for _, state in runs], 0)
        outputs.append(transpose(node, last, (1, 0, 2)) if is_batch_first else last)
    return outputs
