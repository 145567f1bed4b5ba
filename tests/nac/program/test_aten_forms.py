"""Which operations are calls of ATen in a file, and which stay operations of Core.

Either form computes the same and comes back as it was: other tests do not tell them apart.
"""

from __future__ import annotations

import pytest

from nacre.nac.program.lowering import lower_operation
from tests.core.uses import UseOf, module_of

_QKV, _PLANE = "f32[2,3,4] f32[2,5,4] f32[2,5,6]", "f32[1,2,4,4]"
# What is as ATen has it, and beside it what is not: opcode, types, attributes, call.
FORMS: tuple[tuple[str, str, dict[str, object], str], ...] = (
    ("Attention", _QKV, {"scale": 0.0}, "core.Attention"),
    ("Attention", _QKV, {}, "scaled_dot_product_attention.default"),
    ("Attention", f"{_QKV} bool[3,5]", {"scale": 0.5}, "scaled_dot_product_attention.default"),
    ("Attention", f"{_QKV} f32[3,5]", {"scale": 0.5}, "scaled_dot_product_attention.default"),
    ("Attention", f"{_QKV} f16[3,5]", {"scale": 0.5}, "core.Attention"),
    ("Linear", "f32[5,3] f32[2,3]", {}, "linear.default"),
    ("Linear", "f32[3] f32[2,3]", {}, "core.Linear"),
    ("MatMul", "f32[2,3] f32[3,4]", {}, "matmul.default"),
    ("Slice", "f32[4,5]", {"starts": (0, 1), "ends": (4, 5), "steps": (1, 2)}, "slice.Tensor"),
    ("Slice", "f32[4,5]", {"starts": (1, 1), "ends": (4, 5), "steps": (1, 1)}, "core.Slice"),
    ("Slice", "f32[4,5]", {"starts": (0, 0), "ends": (4, 5), "steps": (1, 1)}, "core.Slice"),
    ("Transpose", "f32[2,3]", {"permutation": (1, 0)}, "permute.default"),
    ("Transpose", "f32[2,3]", {"permutation": (0, 1)}, "core.Transpose"),
    ("Reshape", "f32[2,3]", {"new_shape": (6,)}, "view.default"),
    ("Reshape", "f32[2,3]", {"new_shape": (2, 3)}, "core.Reshape"),
    ("ArgMax", "f32[2,3]", {"axis": 1}, "argmax.default"),
    ("ArgMax", "f32[2,3]", {"axis": 1, "last": True}, "core.ArgMax"),
    ("CumSum", "f32[2,3]", {"axis": 1}, "cumsum.default"),
    ("CumSum", "f32[2,3]", {"axis": 1, "reverse": True}, "core.CumSum"),
    ("CumSum", "f32[2,3]", {"axis": 1, "exclusive": True}, "core.CumSum"),
    ("HardSigmoid", "f32[3]", {"alpha": 1 / 6, "beta": 0.5}, "hardsigmoid.default"),
    ("HardSigmoid", "f32[3]", {"alpha": 1 / 6, "beta": 0.25}, "core.HardSigmoid"),
    ("Clip", "f32[3]", {"min": 0.0}, "clamp.default"),
    ("Clip", "i32[3]", {"min": 0.0}, "core.Clip"),
    ("Cast", "f32[3]", {"to": "i32"}, "_to_copy.default"),
    ("Cast", "f32[3]", {"to": "i32", "saturate": True}, "core.Cast"),
    ("MaxPool", _PLANE, {"kernel": (2, 2), "pads": (1, 1, 1, 1)}, "max_pool2d.default"),
    ("MaxPool", _PLANE, {"kernel": (2, 2), "pads": (0, 1, 1, 1)}, "core.MaxPool"),
    ("AvgPool", _PLANE, {"kernel": (2, 2), "dilations": (1, 1)}, "avg_pool2d.default"),
    ("AvgPool", _PLANE, {"kernel": (2, 2), "dilations": (2, 1)}, "core.AvgPool"),
    ("Conv", f"{_PLANE} f32[3,2,1,1]", {}, "convolution.default"),
    ("Conv", "f32[1,4,4,2] f32[1,1,2,3]", {"layout": "NHWC"}, "core.Conv"),
    ("BinOp", "f32[3] f32[3]", {"op": "Add"}, "add.Tensor"),
    ("BinOp", "f32[3] f32[3]", {"op": "Mul"}, "mul.Tensor"),
    ("BinOp", "f32[3] f32[3]", {"op": "Div"}, "div.Tensor"),
    ("BinOp", "i32[3] i32[3]", {"op": "Div"}, "div.Tensor_mode"),
    ("Unary", "f32[3]", {"op": "Tanh"}, "tanh.default"),
    ("Unary", "f32[3]", {"op": "Softplus"}, "softplus.default"),
    ("Unary", "f64[3]", {"op": "Softplus"}, "core.Unary"),
    ("Elu", "f32[3]", {}, "elu.default"),
    ("Selu", "f32[3]", {}, "elu.default"),
    ("Selu", "f32[3]", {"gamma": 1.0}, "core.Selu"),
    ("Cast", "f32[3]", {"to": "bool"}, "core.Cast"),
    ("Cast", "f32[3]", {"to": "f32"}, "core.Cast"),
    ("Cast", "f32[3]", {"to": "i4"}, "core.Cast"),
    ("Sum", "f32[2,3]", {"axes": (0,)}, "sum.dim_IntList"),
    ("Sum", "i32[2,3]", {"axes": (0,)}, "sum.dim_IntList"),
    ("Sum", "f32[2,3]", {"axes": (-1,)}, "core.Sum"),
    ("Sum", "f32[2,3]", {"axes": (1, 0)}, "core.Sum"),
    ("Mean", "f32[2,3]", {"axes": (0,)}, "mean.dim"),
    ("Mean", "i32[2,3]", {"axes": (0,)}, "core.Mean"),
    ("Mean", "f32[2,3]", {"axes": (-1,)}, "core.Mean"),
    ("Reduce", "f32[2,3]", {"op": "Max", "axes": (0,)}, "amax.default"),
    ("Reduce", "f32[2,3]", {"op": "Max", "axes": (-1,)}, "core.Reduce"),
    ("Reduce", "f32[2,3]", {"op": "L1", "axes": (0,)}, "linalg_vector_norm.default"),
    ("Reduce", "i32[2,3]", {"op": "L1", "axes": (0,)}, "core.Reduce"),
    ("Reduce", "f32[2,3]", {"op": "Prod", "axes": (0,)}, "prod.dim_int"),
    ("Reduce", "f32[2,3]", {"op": "Prod", "axes": (0, 1)}, "core.Reduce"),
    ("Reduce", "i32[2,3]", {"op": "Prod", "axes": (0,)}, "core.Reduce"),
    ("Reduce", "f32[2,3]", {"op": "SumSquare", "axes": (0,)}, "core.Reduce"),
    ("CumSum", "i32[2,3]", {"axis": 0}, "cumsum.default"),
    ("ExpandDims", "f32[2,3]", {"axes": (0,)}, "unsqueeze.default"),
    ("ExpandDims", "f32[2,3]", {"axes": (0, 1)}, "core.ExpandDims"),
    ("Squeeze", "f32[1,3]", {"axes": (0,)}, "squeeze.dims"),
    ("Softmax", "f32[2,3]", {"axis": 1}, "_softmax.default"),
    ("Softmax", "f32[2,3]", {"axis": -1}, "core.Softmax"),
    ("LogSoftmax", "f32[2,3]", {"axis": 1}, "_log_softmax.default"),
    ("LayerNorm", "f32[2,3] f32[3] f32[3]", {"axis": 1}, "layer_norm.default"),
    ("LayerNorm", "f32[2,3] f32[3] f32[3]", {"axis": -1}, "core.LayerNorm"),
    ("RmsNorm", "f32[2,3] f32[3]", {"axis": 1}, "rms_norm.default"),
    ("BatchNorm", "f32[1,2,3] f32[2] f32[2] f32[2] f32[2]", {}, "batch_norm.default"),
    ("BatchNorm", "f32[1,3,2] f32[2] f32[2] f32[2] f32[2]", {"axis": 2}, "core.BatchNorm"),
    ("Pad", "f32[2,3]", {"pads": (0, 1, 0, 1)}, "constant_pad_nd.default"),
    ("Pad", "f32[2,3]", {"pads": (0, 1, 0, 1), "mode": "edge"}, "core.Pad"),
    ("Pad", "f32[2,3]", {"pads": (0, 0, 0, 0)}, "core.Pad"),
    ("GatherAxis", "f32[2,3] i64[2]", {"axis": 0}, "index.Tensor"),
    ("GatherAxis", "f32[2,3] i64[2]", {"axis": -1}, "core.GatherAxis"),
    ("GatherElements", "f32[2,3] i64[1,3]", {"axis": 0}, "gather.default"),
    ("GatherElements", "f32[2,3] i64[2,2]", {"axis": 0}, "core.GatherElements"),
    ("GatherElements", "f32[2,3] i64[2,3]", {"axis": -1}, "core.GatherElements"),
    ("Tile", "f32[2,3]", {"repeats": (2, 1)}, "repeat.default"),
    ("Tile", "f32[2,3]", {"repeats": (1, 1)}, "core.Tile"),
    ("Concat", "f32[2,3] f32[2,3]", {"axis": 0}, "cat.default"),
    ("Concat", "f32[2,3]", {"axis": 0}, "core.Concat"),
    ("Concat", "f32[2,3] f32[2,3]", {"axis": -1}, "core.Concat"),
    ("Trilu", "f32[3,3]", {"upper": True}, "triu.default"),
    ("Trilu", "f32[3,3]", {"upper": False}, "tril.default"),
    ("AvgPool", "f32[1,2,4]", {"kernel": (2,)}, "avg_pool1d.default"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("opcode", "types", "attributes", "call"),
    FORMS,
    ids=[f"{opcode} {types} {attributes}" for opcode, types, attributes, _ in FORMS],
)
def test_only_what_is_as_aten_has_it_is_a_call_of_aten(
    opcode: str, types: str, attributes: dict[str, object], call: str
) -> None:
    module = module_of(UseOf(opcode, types, "", attributes))
    found, _ = lower_operation(module.operations[-1], tuple(module.input_types.values()))
    assert found.removeprefix("aten.") == call
