"""One step of a recurrent layer: cells and the functions in them, as ONNX defines them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.slicing import slice_tensor
from nacre.core.onnx.onnx_node import OnnxNode, Tensor

Function = Callable[[int], int]


class Activation(Struct, frozen=True):
    """A function by its name in ONNX: what alpha and beta are where none is given."""

    build: Callable[[OnnxNode, int, float, float], int]
    alpha: float | None = None
    beta: float | None = None


def _unary(op: str) -> Activation:
    return Activation(lambda node, x, alpha, beta: node.add("Unary", x, op=op))


def _times(node: OnnxNode, x: int, factor: float) -> int:
    return node.add("BinOp", x, node.scalar(factor, node.builder.type_of(x).dtype), op="Mul")


def _affine(node: OnnxNode, x: int, alpha: float, beta: float) -> int:
    dtype = node.builder.type_of(x).dtype
    return node.add("BinOp", _times(node, x, alpha), node.scalar(beta, dtype), op="Add")


def _scaled_tanh(node: OnnxNode, x: int, alpha: float, beta: float) -> int:
    return _times(node, node.add("Unary", _times(node, x, beta), op="Tanh"), alpha)


def _thresholded_relu(node: OnnxNode, x: int, alpha: float, beta: float) -> int:
    dtype = node.builder.type_of(x).dtype
    is_above = node.add("Compare", x, node.scalar(alpha, dtype), op="Gt")
    return node.add("Where", is_above, x, node.scalar(0.0, dtype))


ACTIVATIONS = {
    "relu": Activation(lambda node, x, alpha, beta: node.add("ReluNan", x)),
    "tanh": _unary("Tanh"),
    "sigmoid": _unary("Sigmoid"),
    "softsign": _unary("Softsign"),
    "softplus": _unary("Softplus"),
    "affine": Activation(_affine, 1.0, 0.0),
    "leakyrelu": Activation(
        lambda node, x, alpha, beta: node.add("LeakyRelu", x, alpha=alpha), 0.01
    ),
    "thresholdedrelu": Activation(_thresholded_relu, 1.0),
    "scaledtanh": Activation(_scaled_tanh, 1.0, 1.0),
    "hardsigmoid": Activation(
        lambda node, x, alpha, beta: node.add("HardSigmoid", x, alpha=alpha, beta=beta), 0.2, 0.5
    ),
    "elu": Activation(lambda node, x, alpha, beta: node.add("Elu", x, alpha=alpha), 1.0),
}  # fmt: skip


def activation_functions(
    node: OnnxNode, names: Sequence[str], count: int, clip: float
) -> list[Function]:
    """The functions of all directions, so many for each. Each takes the next alpha and beta.

    What goes into a gate is clipped; an LSTM's output of its memory, the third, is not, as
    onnxruntime has it.
    """
    alphas = iter(node.attribute("activation_alpha", ()))
    betas = iter(node.attribute("activation_beta", ()))
    bounds = [clip if at % count < 2 else 0.0 for at in range(len(names))]
    return [
        _function(node, name, alphas, betas, bound)
        for name, bound in zip(names, bounds, strict=True)
    ]


def _function(
    node: OnnxNode, name: str, alphas: Iterator[float], betas: Iterator[float], clip: float
) -> Function:
    activation = ACTIVATIONS.get(name.lower())
    if activation is None:
        names = ", ".join(sorted(ACTIVATIONS))
        raise Unsound(f"its activation is {backquote(name)}, expected one of {names}")
    alpha = 0.0 if activation.alpha is None else float(next(alphas, activation.alpha))
    beta = 0.0 if activation.beta is None else float(next(betas, activation.beta))

    def apply(x: int) -> int:
        held = node.add("Clip", x, min=-clip, max=clip) if clip else x
        return activation.build(node, held, alpha, beta)

    return apply


class Weights(Struct, frozen=True):
    """Weights of some gates, [gates * hidden, in]: the product with rows."""

    matrix: Tensor

    def slice_rows(self, node: OnnxNode, start: int, end: int) -> Weights:
        """Some rows of them."""
        return Weights(slice_tensor(node, self.matrix, 0, start, end))

    def times(self, node: OnnxNode, rows: int, bias: Tensor | None = None) -> int:
        """Rows by weights, plus a bias."""
        values = [rows, node.materialise(self.matrix)]
        if bias is not None:
            values.append(node.materialise(bias))
        return node.add("Linear", *values)


class Cell(Struct, frozen=True):
    """What one direction of a layer computes with, but for its state."""

    node: OnnxNode
    hidden: int
    functions: Sequence[Function]
    recurrent: Sequence[Weights]  # of all gates, or of the gates that need a product of their own
    candidate_bias: Tensor | None = None  # of a GRU that resets after the product
    peepholes: Sequence[int] = ()  # of an LSTM: input, output, forget
    is_coupled: bool = False  # an LSTM forgets as much as it takes in
    resets_after_product: bool = False  # a GRU resets after the product

    def gates(self, value: int, first: int, last: int) -> int:
        """Some gates of all."""
        found = slice_tensor(self.node, value, 1, first * self.hidden, last * self.hidden)
        return self.node.materialise(found)

    def combine(self, op: str, a: int, b: int) -> int:
        """Two values element by element."""
        return self.node.add("BinOp", a, b, op=op)

    def one_minus(self, value: int) -> int:
        """1 minus a value."""
        one = self.node.scalar(1.0, self.node.builder.type_of(value).dtype)
        return self.combine("Sub", one, value)

    def add_peephole(self, value: int, state: int, place: int) -> int:
        """A gate that looks at the memory too."""
        return self.combine("Add", value, self.combine("Mul", state, self.peepholes[place]))


State = tuple[int, ...]
Step = Callable[[Cell, int, State], State]


def rnn(cell: Cell, x: int, state: State) -> State:
    """H = f(x + h R)."""
    (f,) = cell.functions
    sums = cell.combine("Add", x, cell.recurrent[0].times(cell.node, state[0]))
    return (f(sums),)


def gru(cell: Cell, x: int, state: State) -> State:
    """H = (1 - z) n + z h, the gates being z, r and n; r resets the state or its product."""
    (h,), (f, g) = state, cell.functions
    both = cell.recurrent[0].times(cell.node, h)
    opened = f(cell.combine("Add", cell.gates(x, 0, 2), both))
    z, r = cell.gates(opened, 0, 1), cell.gates(opened, 1, 2)
    if cell.resets_after_product:
        whole = cell.recurrent[1].times(cell.node, h, cell.candidate_bias)
        product = cell.combine("Mul", r, whole)
    else:
        product = cell.recurrent[1].times(cell.node, cell.combine("Mul", r, h))
    n = g(cell.combine("Add", cell.gates(x, 2, 3), product))
    return (
        cell.combine("Add", cell.combine("Mul", cell.one_minus(z), n), cell.combine("Mul", z, h)),
    )


def lstm(cell: Cell, x: int, state: State) -> State:
    """C = f c + i n and H = o h(C), the gates being i, o, f and n."""
    (h, c), (f, g, to_output) = state, cell.functions
    sums = cell.combine("Add", x, cell.recurrent[0].times(cell.node, h))
    if not cell.peepholes:
        opened = f(cell.gates(sums, 0, 3))
        i, o, forget = (cell.gates(opened, at, at + 1) for at in range(3))
    else:
        i = f(cell.add_peephole(cell.gates(sums, 0, 1), c, 0))
        forget = f(cell.add_peephole(cell.gates(sums, 2, 3), c, 2))
    if cell.is_coupled:
        forget = cell.one_minus(i)
    n = g(cell.gates(sums, 3, 4))
    memory = cell.combine("Add", cell.combine("Mul", forget, c), cell.combine("Mul", i, n))
    if cell.peepholes:
        o = f(cell.add_peephole(cell.gates(sums, 1, 2), memory, 1))
    return cell.combine("Mul", o, to_output(memory)), memory
