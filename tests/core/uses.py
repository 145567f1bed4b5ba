"""One use of every operation of `nacre-1`: types of operands, attributes, the type that follows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nacre.core.builder import Builder
from nacre.core.module import Module, TensorType
from nacre.core.ops import OPS, OpSpec

Array = npt.NDArray[Any]


class UseOf(Struct, frozen=True):
    """A use; `gives` is the type that the text form declares."""

    opcode: str
    types: str  # separated by spaces
    gives: str
    attributes: Mapping[str, object]


def _use(opcode: str, types: str, gives: str, **attributes: object) -> UseOf:
    return UseOf(opcode, types, gives, attributes)


_SCALES = {"x_scale": 0.5, "w_scales": (0.25,), "y_scale": 0.5, "to": "i8"}
_PLANE = "f32[1,2,4,4]"

_GIVEN = (
    _use("Compare", "f32[2,3] f32[3]", "bool[2,3]", op="Lt"),
    _use("Where", "bool[2,3] i32[3] i32[2,1]", "i32[2,3]"),
    _use("Unary", "f16[2,3]", "f16[2,3]", op="Tanh"),
    _use("ReluNan", "i8[4]", "i8[4]"),
    _use("LeakyRelu", "f32[4]", "f32[4]", alpha=0.1),
    _use("Elu", "f64[4]", "f64[4]"),
    _use("HardSwish", "bf16[4]", "bf16[4]"),
    _use("Gelu", "f32[4]", "f32[4]", approximate="tanh"),
    _use("Clip", "f32[4]", "f32[4]", min=0.0, max=6.0),
    _use("PRelu", "f32[2,3] f32[3]", "f32[2,3]"),
    _use("Cast", "f32[4]", "i8[4]", to="i8"),
    _use("Reduce", "f32[2,3,4]", "f32[2,4]", op="Max", axes=(1,)),
    _use("ArgMax", "f32[2,3]", "i64[2]", axis=-1),
    _use("ArgMin", "f32[2,3]", "i64[2,1]", axis=1, keepdims=True),
    _use("CumSum", "i32[2,3]", "i32[2,3]", axis=1),
    _use("CumProd", "f32[2,3]", "f32[2,3]", axis=0),
    _use("Softmax", "f32[2,3]", "f32[2,3]", axis=-1),
    _use("LogSoftmax", "f32[2,3]", "f32[2,3]", axis=1),
    _use("LayerNorm", "f32[2,3,4] f32[3,4] f32[3,4]", "f32[2,3,4]", axis=1),
    _use("RmsNorm", "f16[2,4] f16[4]", "f16[2,4]", axis=-1),
    _use("GroupNorm", "f32[1,4,3] f32[4] f32[4]", "f32[1,4,3]", groups=2),
    _use("InstanceNorm", "f32[1,2,3] f32[2] f32[2]", "f32[1,2,3]"),
    _use("BatchNorm", "f32[1,2,3] f32[2] f32[2] f32[2] f32[2]", "f32[1,2,3]"),
    _use("Lrn", _PLANE, _PLANE, size=3),
    _use("Linear", "f32[5,3] f32[2,3] f32[2]", "f32[5,2]"),
    _use("Einsum", "f32[2,3] f32[3,4]", "f32[2,4]", equation="ij,jk->ik"),
    _use("Attention", "f32[2,3,4] f32[2,5,4] f32[2,5,6] bool[3,5]", "f32[2,3,6]"),
    _use("Conv", "f32[1,2,4,4] f32[3,2,3,3] f32[3]", "f32[1,3,4,4]", pads=(1, 1, 1, 1)),
    _use("ConvTranspose", "f32[1,2,3] f32[2,3,2]", "f32[1,3,6]", strides=(2,)),
    _use("MaxPool", _PLANE, "f32[1,2,2,2]", kernel=(2, 2), strides=(2, 2)),
    _use("AvgPool", "f32[1,4,4,2]", "f32[1,3,3,2]", kernel=(2, 2), layout="NHWC"),
    _use("LpPool", _PLANE, "f32[1,2,3,3]", kernel=(2, 2)),
    _use("Broadcast", "i64[3]", "i64[2,3]", shape=(2, 3)),
    _use("Concat", "u8[2,3] u8[2,1]", "u8[2,4]", axis=1),
    _use("Pad", "f32[2,3]", "f32[3,5]", pads=(1, 0, 0, 2)),
    _use("Flip", "bool[4]", "bool[4]", axes=(0,)),
    _use("Tile", "i4[2]", "i4[6]", repeats=(3,)),
    _use("GatherAxis", "f32[2,3] i64[4]", "f32[2,4]", axis=1),
    _use("GatherElements", "f32[2,3] i32[2,2]", "f32[2,2]", axis=1),
    _use("GatherNd", "f32[2,3] i64[4,2]", "f32[4]"),
    _use("ScatterElements", "f32[3] i64[2] f32[2]", "f32[3]", axis=0, reduction="add"),
    _use("ScatterNd", "f32[3,2] i64[2,1] f32[2,2]", "f32[3,2]"),
    _use("ScatterRows", "f32[3,2] i64[1] f32[1,2]", "f32[3,2]"),
    _use("TopKValues", "f32[2,5]", "f32[2,2]", k=2, axis=1),
    _use("TopKIndices", "f32[2,5]", "i64[2,2]", k=2, axis=1),
    _use("OneHot", "i64[2] f32[2]", "f32[2,4]", depth=4),
    _use("Iota", "", "i32[2,3]", shape=(2, 3), axis=1, dtype="i32"),
    _use("Resize", _PLANE, "f32[1,2,8,8]", sizes=(1, 2, 8, 8), mode="linear"),
    _use("DepthToSpace", "f32[1,4,2,2]", "f32[1,1,4,4]", block=2),
    _use("SpaceToDepth", "f32[1,1,4,4]", "f32[1,4,2,2]", block=2),
    _use("Trilu", "f32[3,3]", "f32[3,3]", upper=False),
    _use("DynamicSlice", "f32[4,3] i64[2]", "f32[2,3]", sizes=(2, 3)),
    _use("DynamicUpdate", "f32[4,3] f32[1,3] i64[2]", "f32[4,3]"),
    _use("Quantize", "f32[2,3] f32[] i8[]", "i8[2,3]", to="i8"),
    _use("Dequantize", "i8[2,3] f32[3] i8[3]", "f32[2,3]", axis=1),
    _use("DynamicQuantizeScale", "f32[2,3]", "f32[]"),
    _use("DynamicQuantizeZero", "f32[2,3]", "u8[]"),
    _use("QConv", "i8[1,2,4,4] i8[3,2,3,3] i32[3]", "i8[1,3,2,2]", **_SCALES),
    _use("QLinear", "i8[4,3] i8[2,3]", "i8[4,2]", **_SCALES),
    _use("QBinOp", "i8[2,3] i8[2,3]", "i8[2,3]", op="Add", a_scale=0.5, b_scale=0.25,
         y_scale=0.5, to="i8"),
    _use("QPool", "i8[1,2,4,4]", "i8[1,2,3,3]", op="Avg", kernel=(2, 2), x_scale=0.5,
         y_scale=0.25, to="i8"),
)  # fmt: skip


def _is_plain(spec: OpSpec) -> bool:
    """Whether it is a function of each float, which needs no use of its own."""
    is_bare = not any(attribute.is_required for attribute in spec.attributes)
    return "elementwise" in spec.traits and spec.accepts == ("float",) and is_bare


def _uses() -> Iterator[UseOf]:
    given = {use.opcode: use for use in _GIVEN}
    for spec in OPS.values():
        if spec.profile == "nacre-1" and (spec.name in given or _is_plain(spec)):
            yield given.get(spec.name) or _use(spec.name, "f32[4]", "f32[4]")


USES = tuple(_uses())


def type_of(text: str) -> TensorType:
    """A type as the table writes it."""
    match = re.fullmatch(r"(\w+)\[([\d,]*)\]", text)
    assert match is not None, text
    return TensorType(match[1], tuple(int(dim) for dim in match[2].split(",") if dim))


def module_of(use: UseOf) -> Module:
    """A module with this one operation."""
    builder = Builder()
    types = map(type_of, use.types.split())
    values = [builder.input(f"x{i}", t.dtype, t.shape) for i, t in enumerate(types)]
    return builder.module(builder.add(use.opcode, *values, **use.attributes))


def inputs_of(module: Module) -> dict[str, Array]:
    """Small positive numbers; 0 and 1 for indices, so that they lie inside."""
    found = {}
    for number, (name, type_) in enumerate(module.input_types.items()):
        random = np.random.default_rng(number)
        is_index = type_.dtype in ("i32", "i64")
        made = random.integers(0, 2 if is_index else 4, type_.shape) + (not is_index)
        found[name] = np.asarray(made).astype(type_.element.dtype)
    return found
