"""An LSTM whose weights are stored integers; rows are quantised before each product."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.pieces import item
from nacre.core.onnx.handlers.quantized import add_quantize, dynamic_steps
from nacre.core.onnx.handlers.quantized_products import center, center_rows
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.recurrent.cells import Weights
from nacre.core.onnx.recurrent.layers import RECURRENT, expect_shape, layer, lengths_of, sizes_of
from nacre.core.onnx.tensors import combine, shape_of, with_shape
from nacre.core.onnx.use import OnnxNode, Tensor
from nacre.core.unsupported import Unsupported

# Where the scale and the zero point of the weights of an operand are.
_STEPS = {1: (8, 9), 2: (10, 11)}


class StoredWeights(Weights, frozen=True):
    """Weights as integers less their zero points, with a scale, or one for each gate and place."""

    scale: Tensor

    def cut(self, use: OnnxNode, start: int, end: int) -> Weights:
        """All of them: an LSTM has one product with its state."""
        if (start, end) != (0, shape_of(use, self.matrix)[0]):
            raise ValueError("stored weights are not cut")
        return self

    def times(self, use: OnnxNode, rows: int, bias: Tensor | None = None) -> int:
        """Rows as u8, by a scale that all of them share, times the integers; plus a bias."""
        steps = dynamic_steps(use, rows)
        stored = add_quantize(use, rows, steps, "u8")
        values = center(use, stored, steps.zero), use.materialise(self.matrix)
        sums = use.add("Linear", *values)
        factor = use.materialise(combine(use, "Mul", steps.scale, self.scale))
        real = use.add("BinOp", use.cast(sums, "f32"), factor, op="Mul")
        return real if bias is None else use.add("BinOp", real, use.materialise(bias), op="Add")


@handles("com.microsoft.DynamicQuantizeLSTM")
def dynamic_quantize_lstm(use: OnnxNode) -> list[Tensor]:
    """An LSTM; the input is quantised as a whole, the state at each step."""
    kind, sizes = RECURRENT["LSTM"], sizes_of(use)
    columns = kind.gates * sizes.hidden
    expect_shape(use, 1, (sizes.directions, sizes.inputs, columns))
    expect_shape(use, 2, (sizes.directions, sizes.hidden, columns))
    if use.type(0).dtype != "f32":
        raise Unsupported(f"its input is of `{use.type(0).dtype}`, expected f32", "cast it to f32")
    if lengths_of(use, sizes) is not None:
        raise Unsupported("`sequence_lens` is given: which sequences share a scale is not defined",
                     "run sequences of different lengths one by one")  # fmt: skip
    return layer(use, kind, sizes, _stored_weights(use, sizes.directions, columns))


def _stored_weights(use: OnnxNode, directions: int, columns: int) -> Callable[[int, int], Weights]:
    def weights_of(index: int, direction: int) -> Weights:
        if use.type(index).dtype not in ("i8", "u8"):
            reason = f"operand {index} is of `{use.type(index).dtype}`, expected i8 or u8"
            raise Unsupported(reason, "quantise the weights to 8 bits")
        matrix = item(use, use.tensor(index), 0, direction)
        scale, zero = (_one(use, at, direction, directions, columns) for at in _STEPS[index])
        # Made once for all steps.
        return StoredWeights(center_rows(use, matrix, zero), scale)

    return weights_of


def _one(use: OnnxNode, index: int, direction: int, directions: int, columns: int) -> Tensor:
    """The scale or zero point of a direction: a number, or one for each column."""
    count = prod(use.shape(index))
    if count not in (directions, directions * columns):
        found = list(use.shape(index))
        raise Unsound(f"operand {index} has the shape {found}, expected {directions} numbers,"
                      f" or {columns} for each")  # fmt: skip
    shape = (directions,) if count == directions else (directions, columns)
    return item(use, with_shape(use, use.tensor(index), shape), 0, direction)
