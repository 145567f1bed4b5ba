"""An LSTM whose weights are stored integers; rows are quantised before each product."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.quantized import add_quantize, dynamic_scale_and_zero
from nacre.core.onnx.handlers.quantized_products import center, center_rows
from nacre.core.onnx.handlers.slicing import select_index
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.onnx.recurrent.cells import Weights
from nacre.core.onnx.recurrent.layers import RECURRENT, expect_shape, layer, lengths_of, sizes_of
from nacre.core.onnx.tensors import combine, shape_of, with_shape
from nacre.core.unsupported import Unsupported

# Where the scale and the zero point of the weights of an operand are.
_STEPS = {1: (8, 9), 2: (10, 11)}


class StoredWeights(Weights, frozen=True):
    """Weights as integers less their zero points, with a scale, or one for each gate and place."""

    scale: Tensor

    def slice_rows(self, node: OnnxNode, start: int, end: int) -> Weights:
        """All of them: an LSTM has one product with its state."""
        if (start, end) != (0, shape_of(node, self.matrix)[0]):
            raise ValueError("stored weights are not cut")
        return self

    def times(self, node: OnnxNode, rows: int, bias: Tensor | None = None) -> int:
        """Rows as u8, by a scale that all of them share, times the integers; plus a bias."""
        steps = dynamic_scale_and_zero(node, rows)
        stored = add_quantize(node, rows, steps, "u8")
        values = center(node, stored, steps.zero), node.materialise(self.matrix)
        sums = node.add("Linear", *values)
        factor = node.materialise(combine(node, "Mul", steps.scale, self.scale))
        real = node.add("BinOp", node.cast(sums, "f32"), factor, op="Mul")
        return real if bias is None else node.add("BinOp", real, node.materialise(bias), op="Add")


@handles("com.microsoft.DynamicQuantizeLSTM")
def dynamic_quantize_lstm(node: OnnxNode) -> list[Tensor]:
    """An LSTM; the input is quantised as a whole, the state at each step."""
    kind, sizes = RECURRENT["LSTM"], sizes_of(node)
    columns = kind.gates * sizes.hidden
    expect_shape(node, 1, (sizes.directions, sizes.inputs, columns))
    expect_shape(node, 2, (sizes.directions, sizes.hidden, columns))
    if node.type(0).dtype != "f32":
        raise Unsupported(f"its input is of `{node.type(0).dtype}`, expected f32", "cast it to f32")
    if lengths_of(node, sizes) is not None:
        raise Unsupported("`sequence_lens` is given: which sequences share a scale is not defined",
                     "run sequences of different lengths one by one")  # fmt: skip
    return layer(node, kind, sizes, _stored_weights(node, sizes.directions, columns))


def _stored_weights(node: OnnxNode, directions: int, columns: int) -> Callable[[int, int], Weights]:
    def weights_of(index: int, direction: int) -> Weights:
        if node.type(index).dtype not in ("i8", "u8"):
            reason = f"operand {index} is of `{node.type(index).dtype}`, expected i8 or u8"
            raise Unsupported(reason, "quantise the weights to 8 bits")
        matrix = select_index(node, node.tensor(index), 0, direction)
        scale, zero = (
            _direction_parameter(node, at, direction, directions, columns) for at in _STEPS[index]
        )
        # Made once for all steps.
        return StoredWeights(center_rows(node, matrix, zero), scale)

    return weights_of


def _direction_parameter(
    node: OnnxNode, index: int, direction: int, directions: int, columns: int
) -> Tensor:
    """The scale or zero point of a direction: a number, or one for each column."""
    count = prod(node.shape(index))
    if count not in (directions, directions * columns):
        dims = list(node.shape(index))
        raise Unsound(f"operand {index} has the shape {dims}, expected {directions} numbers,"
                      f" or {columns} for each")  # fmt: skip
    shape = (directions,) if count == directions else (directions, columns)
    return select_index(node, with_shape(node, node.tensor(index), shape), 0, direction)
