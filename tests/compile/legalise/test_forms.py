"""Every form: legal, without escapes, and with the values of what it stands for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compile.legalise.checking import legal_of, opcodes, require_same
from tests.compile.legalise.samples import Sample, module_of

pytestmark = pytest.mark.sampled(2)  # together they take long

Make = Callable[[Sample], int | tuple[int, ...]]
PRECISIONS = ("f32", "f16")


def unary(opcode: str, *shape: int, **attributes: object) -> Make:
    return lambda s: s.add(opcode, s.x(*shape), **attributes)


def positive(op: str) -> Make:
    """A function of numbers above 0."""

    def make(s: Sample) -> int:
        size = s.add("Unary", s.x(3, 5), op="Abs")
        above = s.add("BinOp", size, s.builder.constant(np.float32(0.5)), op="Add")
        return s.add("Unary", above, op=op)

    return make


def einsum(equation: str, *shapes: tuple[int, ...]) -> Make:
    return lambda s: s.add("Einsum", *(s.x(*shape) for shape in shapes), equation=equation)


EQUATIONS = (
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("bij,bkj->bki", (2, 3, 4), (2, 5, 4)),
    ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("ij->ji", (3, 4)),
    ("ijk->j", (3, 4, 5)),
    ("i,j->ij", (3,), (4,)),
    ("ij,ij->i", (3, 4), (3, 4)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("...i,ij->...j", (2, 3, 4), (4, 5)),
    ("bi,bj->bij", (2, 3), (2, 4)),
)
FORMS: dict[str, Make] = {
    # Functions of one element
    **{f"unary {op}": unary("Unary", 3, 5, op=op) for op in
       ("Sigmoid", "Tanh", "Abs", "Softplus", "Softsign", "Exp2", "Sinh", "Cosh", "Expm1")},
    **{f"positive {op}": positive(op) for op in
       ("Sqrt", "Rsqrt", "Reciprocal", "Log2", "Log10")},
    **{name: unary(name, 4, 6) for name in
       ("Relu", "ReluNan", "HardSigmoid", "HardSwish", "Elu", "Selu", "Gelu", "Silu", "LeakyRelu",
        "Neg", "Exp")},
    "gelu by tanh": unary("Gelu", 4, 6, approximate="tanh"),
    "elu alpha": unary("Elu", 4, 6, alpha=0.3),
    "hard sigmoid": unary("HardSigmoid", 4, 6, alpha=1 / 6, beta=0.5),
    "relu6": unary("Clip", 4, 6, min=0.0, max=6.0),
    "clip above": unary("Clip", 4, 6, max=0.5),
    "clip below": unary("Clip", 4, 6, min=0.0),
    "prelu": lambda s: s.add("PRelu", s.x(2, 3, 4, 5), s.w(3, 1, 1)),
    "prelu of one": lambda s: s.add("PRelu", s.x(2, 3), s.w(1)),
    "mish": lambda s: (lambda x: s.add("BinOp", x, s.add(
        "Unary", s.add("Unary", x, op="Softplus"), op="Tanh"), op="Mul"))(s.x(4, 6)),
    # Windows
    "conv2d": lambda s: s.add("Conv2d", s.x(1, 6, 7, 3), s.w(3, 3, 3, 4), strides=(2, 1),
                              padding="Same"),
    "conv": lambda s: s.add("Conv", s.x(2, 3, 8, 9), s.w(4, 3, 3, 2), s.w(4), pads=(1, 0, 1, 1),
                            strides=(2, 1), dilations=(1, 2)),
    "grouped conv": lambda s: s.add("Conv", s.x(1, 4, 5, 5), s.w(6, 2, 3, 3), groups=2),
    "depthwise conv": lambda s: s.add("Conv", s.x(1, 4, 5, 5), s.w(4, 1, 3, 3), groups=4),
    "pointwise conv": lambda s: s.add("Conv", s.x(1, 4, 5, 5), s.w(7, 4, 1, 1), s.w(7)),
    "conv1d": lambda s: s.add("Conv", s.x(2, 3, 12), s.w(4, 3, 3), s.w(4), pads=(1, 2),
                              strides=(2,), dilations=(2,)),
    "conv1d last": lambda s: s.add("Conv", s.x(2, 12, 3), s.w(3, 3, 4), layout="NHWC"),
    "conv3d": lambda s: s.add("Conv", s.x(1, 2, 5, 6, 4), s.w(3, 2, 2, 3, 3), s.w(3),
                              pads=(1, 1, 0, 0, 1, 1), strides=(2, 1, 1), dilations=(2, 1, 1)),
    "computed bias": lambda s: s.add("Conv", s.x(1, 3, 5, 5), s.w(4, 3, 3, 3), s.x(4)),
    "conv transpose 2": lambda s: s.add("ConvTranspose", s.x(1, 3, 4, 5), s.w(3, 4, 2, 2), s.w(4),
                                        strides=(2, 2)),
    "conv transpose 1d": lambda s: s.add("ConvTranspose", s.x(1, 3, 5), s.w(3, 4, 4),
                                         strides=(2,), pads=(1, 1)),
    "conv transpose groups": lambda s: s.add("ConvTranspose", s.x(1, 4, 4, 5), s.w(4, 3, 4, 3),
                                             s.w(6), strides=(2, 3), pads=(1, 0, 1, 1), groups=2),
    "conv transpose far apart": lambda s: s.add("ConvTranspose", s.x(1, 4, 4, 5), s.w(4, 3, 2, 3),
                                                s.w(6), strides=(5, 4), pads=(1, 0, 2, 1), groups=2,
                                                output_padding=(4, 3)),
    "conv transpose cropped": lambda s: s.add("ConvTranspose", s.x(1, 2, 3, 3), s.w(2, 3, 2, 2),
                                              strides=(20_000, 1), pads=(19_990, 0, 19_990, 0)),
    "conv transpose dilated": lambda s: s.add("ConvTranspose", s.x(1, 2, 4, 5), s.w(2, 3, 3, 2),
                                              s.w(3), strides=(2, 1), dilations=(2, 3),
                                              pads=(1, 0, 2, 1), output_padding=(1, 0)),
    "conv transpose 3d": lambda s: s.add("ConvTranspose", s.x(1, 4, 3, 4, 5), s.w(4, 3, 3, 2, 3),
                                         s.w(6), strides=(2, 2, 1), pads=(1, 0, 1, 1, 0, 1),
                                         output_padding=(1, 1, 0), groups=2),
    "conv transpose 3d far apart": lambda s: s.add("ConvTranspose", s.x(1, 4, 3, 2, 3),
                                                   s.w(4, 3, 2, 2, 2), s.w(6), strides=(5, 3, 2),
                                                   pads=(3, 0, 1, 2, 0, 1),
                                                   output_padding=(4, 1, 0), groups=2),
    "conv transpose 3d dilated": lambda s: s.add("ConvTranspose", s.x(2, 2, 3, 4, 3),
                                                 s.w(2, 3, 2, 3, 2), strides=(2, 1, 2),
                                                 dilations=(3, 2, 1), pads=(1, 1, 0, 2, 0, 0)),
    "max pool": unary("MaxPool", 1, 3, 8, 9, kernel=(3, 2), strides=(2, 2), pads=(1, 0, 1, 1)),
    "max pool ceil": unary("MaxPool", 1, 3, 8, 9, kernel=(3, 3), strides=(2, 2), ceil=True),
    "max pool dilated": unary("MaxPool", 1, 3, 9, 9, kernel=(3, 2), dilations=(2, 3),
                              pads=(1, 1, 1, 0)),
    "max pool 1d": unary("MaxPool", 2, 3, 9, kernel=(3,), strides=(2,)),
    "max pool 3d": unary("MaxPool", 1, 2, 5, 6, 7, kernel=(2, 3, 2), strides=(1, 2, 2),
                         pads=(0, 1, 0, 1, 1, 0)),
    "average": unary("AvgPool", 1, 3, 8, 9, kernel=(3, 2), strides=(2, 2), pads=(1, 0, 1, 1)),
    "average counts": unary("AvgPool", 1, 3, 8, 9, kernel=(3, 2), pads=(1, 0, 1, 1),
                            count_pad=True),
    "average ceil": unary("AvgPool", 1, 3, 8, 9, kernel=(3, 3), strides=(2, 2), ceil=True),
    "average ceil counts": unary("AvgPool", 1, 3, 8, 9, kernel=(3, 3), strides=(2, 2), ceil=True,
                                 pads=(1, 1, 0, 1), count_pad=True),
    "average 3d": unary("AvgPool", 1, 2, 5, 6, 7, kernel=(2, 3, 2), pads=(1, 1, 0, 0, 1, 1)),
    "average dilated": unary("AvgPool", 1, 2, 7, 7, kernel=(2, 3), dilations=(2, 2)),
    "lp pool": unary("LpPool", 1, 2, 7, 7, kernel=(2, 3), p=2, pads=(1, 0, 0, 1)),
    # Channels
    "squeeze and excite": lambda s: (lambda x: s.add("BinOp", x, s.add(
        "Unary", s.add("Conv", s.add("Mean", x, axes=(2, 3), keepdims=True), s.w(4, 4, 1, 1)),
        op="Sigmoid"), op="Mul"))(s.add("Conv", s.x(1, 3, 6, 6), s.w(4, 3, 3, 3))),
    "batch norm": lambda s: s.add("BatchNorm", s.x(2, 3, 4, 5), s.w(3), s.w(3), s.w(3),
                                  s.builder.constant(np.array([0.5, 1, 2], np.float32))),
    "batch norm computed": lambda s: s.add(
        "BatchNorm", s.x(2, 3, 4, 5), s.w(3), s.x(3), s.w(3), s.add("Exp", s.x(3))),
    "affine": lambda s: s.add("BinOp", s.add("BinOp", s.x(1, 4, 5, 3), s.w(3), op="Mul"),
                              s.w(3), op="Add"),
    "over channels": lambda s: s.add("BinOp", s.x(1, 4, 5, 3), s.builder.constant(
        np.array([2, 3, 5], np.float32)), op="Div"),
    # Sizes
    "nearest": unary("Resize", 1, 3, 4, 5, sizes=(1, 3, 8, 15), coordinate="asymmetric",
                     rounding="floor"),
    "nearest half pixel": unary("Resize", 1, 3, 4, 5, sizes=(1, 3, 8, 10)),
    "nearest odd": unary("Resize", 1, 3, 4, 5, sizes=(1, 3, 7, 3)),
    "nearest down": unary("Resize", 1, 3, 8, 8, sizes=(1, 3, 4, 2), coordinate="asymmetric",
                          rounding="floor"),
    "bilinear": unary("Resize", 1, 3, 4, 5, sizes=(1, 3, 8, 9), mode="linear"),
    "bilinear last": unary("Resize", 2, 4, 5, 3, sizes=(2, 8, 10, 3), mode="linear"),
    "bilinear corners": unary("Resize", 2, 3, 4, 5, sizes=(2, 3, 7, 9), mode="linear",
                              coordinate="align_corners"),
    "bicubic": unary("Resize", 1, 2, 6, 5, sizes=(1, 2, 9, 7), mode="cubic"),
    "area": unary("Resize", 1, 2, 8, 9, sizes=(1, 2, 3, 4), mode="linear", antialias=True),
    # Moves
    "depth to space": unary("DepthToSpace", 1, 12, 3, 4, block=2),
    "depth to space crd": unary("DepthToSpace", 1, 12, 3, 4, block=2, mode="CRD"),
    "space to depth": unary("SpaceToDepth", 2, 3, 4, 6, block=2),
    "space to depth crd": unary("SpaceToDepth", 1, 3, 4, 6, block=2, mode="CRD"),
    "flatten": lambda s: s.add("Linear", s.add("Reshape", s.add("Conv", s.x(1, 3, 6, 6),
                               s.w(4, 3, 3, 3)), new_shape=(1, 64)), s.w(5, 64)),
    "index": unary("Index", 3, 4, indices=(1, 2)),
    "flip": unary("Flip", 3, 20, 4, axes=(0, 1)),
    "tile": unary("Tile", 2, 3, 4, repeats=(2, 1, 3)),
    "pad": unary("Pad", 2, 5, pads=(1, 0, 0, 2), value=1.5),
    "pad cuts": unary("Pad", 3, 5, pads=(1, -1, 0, 2)),
    "pad edge": unary("Pad", 3, 5, pads=(1, 2, 0, 3), mode="edge"),
    "pad reflect": unary("Pad", 3, 25, pads=(1, 20, 0, 21), mode="reflect"),
    "pad wrap": unary("Pad", 3, 5, pads=(1, 2, 0, 7), mode="wrap"),
    "concat": lambda s: s.add("Concat", s.x(2, 3), s.w(2, 2), axis=1),
    "broadcast": unary("Broadcast", 3, 1, shape=(2, 3, 4)),
    "known rows": lambda s: s.add("GatherAxis", s.x(4, 5, 6), s.builder.constant(
        np.array([[3, 1], [-1, 0]], np.int64)), axis=1),
    "rows": lambda s: s.add("Gather", s.w(6, 4), s.x(2, 3, dtype="i64")),
    "rows of an axis": lambda s: s.add("GatherAxis", s.x(3, 6, 2), s.x(2, 2, dtype="i32"), axis=1),
    # Products
    "dot": lambda s: s.add("Dot", s.x(5), s.x(5)),
    "matrix by vector": lambda s: s.add("Dot", s.x(4, 5), s.w(5)),
    "matmul": lambda s: s.add("MatMul", s.x(4, 5), s.x(5, 6)),
    "matmul batched": lambda s: s.add("MatMul", s.x(2, 3, 4, 5), s.x(3, 5, 6)),
    "matmul shared": lambda s: s.add("MatMul", s.x(2, 3, 4, 5), s.x(5, 6)),
    "matmul by constants": lambda s: s.add("MatMul", s.x(2, 4, 5), s.w(2, 5, 6)),
    "linear of a vector": lambda s: s.add("Linear", s.x(5), s.w(4, 5), s.w(4)),
    "linear computed": lambda s: s.add("Linear", s.x(3, 5), s.x(4, 5), s.x(4)),
    **{f"einsum {e[0]}": einsum(*e) for e in EQUATIONS},
    # Norms and attention
    "softmax": unary("Softmax", 3, 4, 5, axis=-1),
    "softmax along": unary("Softmax", 3, 4, 5, axis=1),
    "log softmax": unary("LogSoftmax", 3, 4, 5, axis=0),
    "layer norm": lambda s: s.add("LayerNorm", s.x(2, 3, 8), s.w(8), s.w(8), axis=-1),
    "layer norm of axes": lambda s: s.add("LayerNorm", s.x(2, 3, 8), s.w(3, 8), s.w(3, 8), axis=1),
    "layer norm computed": lambda s: s.add("LayerNorm", s.x(2, 3, 8), s.x(8), s.w(8), axis=2),
    "rms norm": lambda s: s.add("RmsNorm", s.x(2, 3, 8), s.w(3, 8), axis=1),
    "group norm": lambda s: s.add("GroupNorm", s.x(2, 6, 4, 5), s.w(6), s.w(6), groups=3),
    "instance norm": lambda s: s.add("InstanceNorm", s.x(2, 3, 8, 5), s.w(3), s.w(3)),
    "attention": lambda s: s.add("Attention", s.x(2, 3, 4, 8), s.x(2, 3, 5, 8), s.x(2, 3, 5, 6)),
    "attention causal": lambda s: s.add("Attention", s.x(2, 5, 8), s.x(2, 5, 8), s.x(2, 5, 6),
                                        causal=True, scale=0.5),
    "attention masked": lambda s: s.add("Attention", s.x(2, 5, 8), s.x(2, 5, 8), s.x(2, 5, 6),
                                        s.x(5, 5)),
    "attention blind": lambda s: s.add(
        "Attention", s.x(2, 3, 8), s.x(2, 4, 8), s.x(2, 4, 6), s.builder.constant(
            np.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1]], bool))),
    "attention hidden": lambda s: s.add("Attention", s.x(2, 5, 8), s.x(2, 5, 8), s.x(2, 5, 6),
                                        s.x(2, 5, 5, dtype="bool")),
    # Reductions
    **{f"{name} {axes}": unary(name, 3, 4, 5, axes=axes, keepdims=keep)
       for name in ("Mean", "Sum") for axes, keep in (((0,), False), ((1,), True), ((2,), False),
                                                      ((0, 2), True), ((), False))},
    "global mean": unary("Mean", 1, 3, 6, 7, axes=(2, 3), keepdims=True),
    **{f"reduce {op} {axes}": unary("Reduce", 3, 4, 5, op=op, axes=axes)
       for op in ("Max", "Min", "SumSquare", "L1", "L2", "LogSumExp", "Prod")
       for axes in ((1,), (2,), (0, 2))},
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_legal_and_right(name: str, precision: str) -> None:
    legal = require_same(module_of(FORMS[name]), precision)
    # A mask that is an input stays f32 until its largest is taken off, which is work for the VPU.
    is_wide = name == "attention masked" and precision == "f16"
    assert bool(legal.escaped) == is_wide


def test_mish_has_neither_logarithms_nor_f32() -> None:
    legal = legal_of(module_of(FORMS["mish"]), "f16")
    assert {op.type.dtype for op in legal.module.operations} == {"f16"}
    assert opcodes(legal) == {"Unary", "BinOp"}
    kinds = [op.attributes["op"] for op in legal.module.operations if op.opcode == "Unary"]
    assert kinds == ["Sigmoid"]


def test_convolutions_of_pixels_are_products() -> None:
    assert opcodes(legal_of(module_of(FORMS["pointwise conv"]))) >= {"Linear"}
    assert "Conv" not in opcodes(legal_of(module_of(FORMS["pointwise conv"])))


def test_a_computed_scale_is_a_convolution_of_each_channel() -> None:
    legal = legal_of(module_of(FORMS["squeeze and excite"]))
    convolutions = [op for op in legal.module.operations if op.opcode == "Conv"]
    assert convolutions[-1].attributes.get("groups") == 4


def test_a_transposed_convolution_of_2_by_2_is_one_product() -> None:
    legal = legal_of(module_of(FORMS["conv transpose 2"]))
    assert "Conv" not in opcodes(legal)
    assert [op.type.shape[-1] for op in legal.module.operations if op.opcode == "Linear"] == [16]


@given(st.data())
def test_convolutions_of_any_shape(data: st.DataObject) -> None:
    spatial = data.draw(st.integers(1, 3))
    kernel = data.draw(st.tuples(*[st.integers(1, 3)] * spatial))
    dilations = data.draw(st.tuples(*[st.integers(1, 2)] * spatial))
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    size = [data.draw(st.integers(r, r + 4)) for r in reach]
    pads = data.draw(st.tuples(*[st.integers(0, r - 1) for r in reach * 2]))
    strides = data.draw(st.tuples(*[st.integers(1, 3)] * spatial))
    groups = data.draw(st.sampled_from([1, 2]))
    inputs, outputs = groups * data.draw(st.integers(1, 2)), groups * data.draw(st.integers(1, 3))
    opcode = data.draw(st.sampled_from(["Conv", "ConvTranspose"]))
    given_ = {"strides": strides, "pads": pads, "groups": groups, "dilations": dilations}
    sample = Sample()
    x = sample.x(data.draw(st.integers(1, 2)), inputs, *size)
    across = (outputs, inputs // groups) if opcode == "Conv" else (inputs, outputs // groups)
    weights = sample.w(*across, *kernel)
    bias = [sample.w(outputs)] if data.draw(st.booleans()) else []
    if opcode == "ConvTranspose":
        axes = zip(size, strides, reach, pads[:spatial], pads[spatial:], strict=True)
        after = [(n - 1) * s + r - p - q for n, s, r, p, q in axes]
        if min(after) < 1:
            return
    module = sample.module(sample.add(opcode, x, weights, *bias, **given_))
    assert not require_same(module).escaped


@given(st.data())
def test_poolings_of_any_shape(data: st.DataObject) -> None:
    spatial = data.draw(st.integers(1, 3))
    opcode = data.draw(st.sampled_from(["MaxPool", "AvgPool"]))
    kernel = data.draw(st.tuples(*[st.integers(1, 3)] * spatial))
    size = [data.draw(st.integers(k, k + 5)) for k in kernel]
    pads = data.draw(st.tuples(*[st.integers(0, k // 2) for k in kernel * 2]))
    strides = data.draw(st.tuples(*[st.integers(1, 3)] * spatial))
    given_: dict[str, object] = {"kernel": kernel, "strides": strides, "pads": pads}
    given_["ceil"] = data.draw(st.booleans())
    if opcode == "AvgPool" and spatial < 3:
        given_["count_pad"] = data.draw(st.booleans())
    given_["layout"] = layout = data.draw(st.sampled_from(["NCHW", "NHWC"]))
    shape = (2, 3, *size) if layout == "NCHW" else (2, *size, 3)
    sample = Sample()
    module = sample.module(sample.add(opcode, sample.x(*shape), **given_))
    assert not require_same(module).escaped


@given(st.permutations(range(4)), st.tuples(*[st.integers(1, 4)] * 4))
def test_transpositions_of_any_kind(order: list[int], shape: tuple[int, ...]) -> None:
    module = module_of(lambda s: s.add("Transpose", s.x(*shape), permutation=tuple(order)))
    require_same(module)
