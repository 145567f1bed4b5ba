"""One step of a recurrent layer: cells and the functions in them, as ONNX defines them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.pieces import piece
from nacre.core.onnx.use import OnnxNode, Tensor

Function = Callable[[int], int]


class Activation(Struct, frozen=True):
    """A function by its name in ONNX: what alpha and beta are where none is given."""

    build: Callable[[OnnxNode, int, float, float], int]
    alpha: float | None = None
    beta: float | None = None


def _unary(op: str) -> Activation:
    return Activation(lambda use, x, alpha, beta: use.add("Unary", x, op=op))


def _times(use: OnnxNode, x: int, factor: float) -> int:
    return use.add("BinOp", x, use.scalar(factor, use.builder.type_of(x).dtype), op="Mul")


def _affine(use: OnnxNode, x: int, alpha: float, beta: float) -> int:
    dtype = use.builder.type_of(x).dtype
    return use.add("BinOp", _times(use, x, alpha), use.scalar(beta, dtype), op="Add")


def _scaled_tanh(use: OnnxNode, x: int, alpha: float, beta: float) -> int:
    return _times(use, use.add("Unary", _times(use, x, beta), op="Tanh"), alpha)


def _thresholded_relu(use: OnnxNode, x: int, alpha: float, beta: float) -> int:
    dtype = use.builder.type_of(x).dtype
    is_above = use.add("Compare", x, use.scalar(alpha, dtype), op="Gt")
    return use.add("Where", is_above, x, use.scalar(0.0, dtype))


ACTIVATIONS = {
    "relu": Activation(lambda use, x, alpha, beta: use.add("ReluNan", x)),
    "tanh": _unary("Tanh"),
    "sigmoid": _unary("Sigmoid"),
    "softsign": _unary("Softsign"),
    "softplus": _unary("Softplus"),
    "affine": Activation(_affine, 1.0, 0.0),
    "leakyrelu": Activation(
        lambda use, x, alpha, beta: use.add("LeakyRelu", x, alpha=alpha), 0.01
    ),
    "thresholdedrelu": Activation(_thresholded_relu, 1.0),
    "scaledtanh": Activation(_scaled_tanh, 1.0, 1.0),
    "hardsigmoid": Activation(
        lambda use, x, alpha, beta: use.add("HardSigmoid", x, alpha=alpha, beta=beta), 0.2, 0.5
    ),
    "elu": Activation(lambda use, x, alpha, beta: use.add("Elu", x, alpha=alpha), 1.0),
}  # fmt: skip


def functions(use: OnnxNode, names: Sequence[str], count: int, clip: float) -> list[Function]:
    """The functions of all directions, so many for each. Each takes the next alpha and beta.

    What goes into a gate is clipped; an LSTM's output of its memory, the third, is not, as
    onnxruntime has it.
    """
    alphas = iter(use.attribute("activation_alpha", ()))
    betas = iter(use.attribute("activation_beta", ()))
    bounds = [clip if at % count < 2 else 0.0 for at in range(len(names))]
    return [
        _function(use, name, alphas, betas, bound)
        for name, bound in zip(names, bounds, strict=True)
    ]


def _function(
    use: OnnxNode, name: str, alphas: Iterator[float], betas: Iterator[float], clip: float
) -> Function:
    found = ACTIVATIONS.get(name.lower())
    if found is None:
        names = ", ".join(sorted(ACTIVATIONS))
        raise Unsound(f"its activation is {backquote(name)}, expected one of {names}")
    alpha = 0.0 if found.alpha is None else float(next(alphas, found.alpha))
    beta = 0.0 if found.beta is None else float(next(betas, found.beta))

    def apply(x: int) -> int:
        held = use.add("Clip", x, min=-clip, max=clip) if clip else x
        return found.build(use, held, alpha, beta)

    return apply


class Weights(Struct, frozen=True):
    """Weights of some gates, [gates * hidden, in]: the product with rows."""

    matrix: Tensor

    def cut(self, use: OnnxNode, start: int, end: int) -> Weights:
        """Some rows of them."""
        return Weights(piece(use, self.matrix, 0, start, end))

    def times(self, use: OnnxNode, rows: int, bias: Tensor | None = None) -> int:
        """Rows by weights, plus a bias."""
        values = [rows, use.materialise(self.matrix)]
        if bias is not None:
            values.append(use.materialise(bias))
        return use.add("Linear", *values)


class Cell(Struct, frozen=True):
    """What one direction of a layer computes with, but for its state."""

    use: OnnxNode
    hidden: int
    functions: Sequence[Function]
    recurrent: Sequence[Weights]  # of all gates, or of the gates that need a product of their own
    candidate_bias: Tensor | None = None  # of a GRU that resets after the product
    peepholes: Sequence[int] = ()  # of an LSTM: input, output, forget
    is_coupled: bool = False  # an LSTM forgets as much as it takes in
    is_late: bool = False  # a GRU resets after the product

    def gates(self, value: int, first: int, last: int) -> int:
        """Some gates of all."""
        found = piece(self.use, value, 1, first * self.hidden, last * self.hidden)
        return self.use.materialise(found)

    def combined(self, op: str, a: int, b: int) -> int:
        """Two values element by element."""
        return self.use.add("BinOp", a, b, op=op)

    def rest(self, value: int) -> int:
        """1 minus a value."""
        one = self.use.scalar(1.0, self.use.builder.type_of(value).dtype)
        return self.combined("Sub", one, value)

    def seen(self, value: int, state: int, place: int) -> int:
        """A gate that looks at the memory too."""
        return self.combined("Add", value, self.combined("Mul", state, self.peepholes[place]))


State = tuple[int, ...]
Step = Callable[[Cell, int, State], State]


def rnn(cell: Cell, x: int, state: State) -> State:
    """H = f(x + h R)."""
    (f,) = cell.functions
    sums = cell.combined("Add", x, cell.recurrent[0].times(cell.use, state[0]))
    return (f(sums),)


def gru(cell: Cell, x: int, state: State) -> State:
    """H = (1 - z) n + z h, the gates being z, r and n; r resets the state or its product."""
    (h,), (f, g) = state, cell.functions
    both = cell.recurrent[0].times(cell.use, h)
    opened = f(cell.combined("Add", cell.gates(x, 0, 2), both))
    z, r = cell.gates(opened, 0, 1), cell.gates(opened, 1, 2)
    if cell.is_late:
        whole = cell.recurrent[1].times(cell.use, h, cell.candidate_bias)
        product = cell.combined("Mul", r, whole)
    else:
        product = cell.recurrent[1].times(cell.use, cell.combined("Mul", r, h))
    n = g(cell.combined("Add", cell.gates(x, 2, 3), product))
    return (
        cell.combined("Add", cell.combined("Mul", cell.rest(z), n), cell.combined("Mul", z, h)),
    )


def lstm(cell: Cell, x: int, state: State) -> State:
    """C = f c + i n and H = o h(C), the gates being i, o, f and n."""
    (h, c), (f, g, to_output) = state, cell.functions
    sums = cell.combined("Add", x, cell.recurrent[0].times(cell.use, h))
    if not cell.peepholes:
        opened = f(cell.gates(sums, 0, 3))
        i, o, forget = (cell.gates(opened, at, at + 1) for at in range(3))
    else:
        i = f(cell.seen(cell.gates(sums, 0, 1), c, 0))
        forget = f(cell.seen(cell.gates(sums, 2, 3), c, 2))
    if cell.is_coupled:
        forget = cell.rest(i)
    n = g(cell.gates(sums, 3, 4))
    memory = cell.combined("Add", cell.combined("Mul", forget, c), cell.combined("Mul", i, n))
    if cell.peepholes:
        o = f(cell.seen(cell.gates(sums, 1, 2), memory, 1))
    return cell.combined("Mul", o, to_output(memory)), memory
