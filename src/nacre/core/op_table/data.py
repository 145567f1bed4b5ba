"""Operations of `nacre-1` that move elements. Indices below 0 count from the end.

`mode` of the two blocks: `DCR` has the block before the channels that are left, as ONNX, `CRD`
behind them, as PyTorch.
"""

from __future__ import annotations

from nacre.core.specs import fixed_type, optional, required, row, type_of_attribute, type_of_operand
from nacre.kernels.movement.graph_pad import pad_problem

_AXIS = required("axis", "int")
_SHAPE = required("shape", "ints")
_REDUCTION = optional("reduction", "word", "none", "none", "add", "mul", "min", "max")
_LARGEST = optional("largest", "bool", True)
_K = required("k", "int")
_BLOCK = (required("block", "int"), optional("mode", "word", "DCR", "DCR", "CRD"))

DATA = (
    row("Broadcast", "stretched to a shape, as in BinOp", "input:any", _SHAPE, traits=("view",),
        aten="expand.default"),
    row("Concat", "tensors after each other along an axis", "inputs*:any", _AXIS,
        aten="cat.default"),
    row("Pad", "elements around; pads are all beginnings, then all ends, below 0 they cut",
        "input:any", required("pads", "ints"),
        optional("mode", "word", "constant", "constant", "reflect", "edge", "wrap"),
        optional("value", "float", 0.0), aten="constant_pad_nd.default",
        problem=pad_problem),
    row("Flip", "axes run backwards", "input:any", required("axes", "ints"), aten="flip.default"),
    row("Tile", "repeated along every axis", "input:any", required("repeats", "ints"),
        aten="repeat.default"),
    row("GatherAxis", "the indices in the place of an axis", "input:any indices:index", _AXIS,
        aten="index.Tensor"),
    row("GatherElements", "an index of an axis for each element", "input:any indices:index",
        _AXIS, aten="gather.default"),
    row("GatherNd", "parts by index tuples, which the last axis holds", "input:any indices:index",
        optional("batch_dims", "int", 0), aten="index.Tensor"),
    row("ScatterElements", "elements replaced, or combined, at an index of an axis each",
        "input:any indices:index updates:same", _AXIS, _REDUCTION, aten="scatter_reduce.two"),
    row("ScatterNd", "parts replaced, or combined, by index tuples",
        "input:any indices:index updates:same", _REDUCTION, aten="index_put.default"),
    row("ScatterRows", "rows of the first axis replaced; an index without axes is of one row",
        "input:any indices:index rows:same", aten="index_put.default"),
    row("TopKValues", "the k largest or smallest elements, in order", "input:number", _K, _AXIS,
        _LARGEST, aten="topk.default"),
    row("TopKIndices", "where the k largest or smallest elements lie", "input:number", _K, _AXIS,
        _LARGEST, result=fixed_type("i64"), traits=("flat",), aten="topk.default"),
    row("OneHot", "values[1] where the new axis meets the index, values[0] elsewhere",
        "indices:index values:any", required("depth", "int"), optional("axis", "int", -1),
        result=type_of_operand(1), aten="one_hot.default"),
    row("Iota", "each element is its place along an axis", "", _SHAPE, _AXIS,
        required("dtype", "dtype"), result=type_of_attribute("dtype"), aten="arange.start_step"),
    row("Resize", "another size, by neighbours or by interpolation", "input:number",
        required("sizes", "ints"),
        optional("mode", "word", "nearest", "nearest", "linear", "cubic"),
        optional("coordinate", "word", "half_pixel", "half_pixel", "half_pixel_symmetric",
                 "pytorch_half_pixel", "align_corners", "asymmetric"),
        optional("rounding", "word", "round_prefer_floor", "round_prefer_floor",
                 "round_prefer_ceil", "floor", "ceil"),
        optional("scales", "floats", ()), optional("cubic_a", "float", -0.75),
        optional("exclude_outside", "bool", False), optional("antialias", "bool", False),
        aten="upsample_bilinear2d.vec"),
    row("DepthToSpace", "channels to a finer plane, [N, C, H, W]", "input:any", *_BLOCK,
        aten="view.default permute.default clone.default view.default"),
    row("SpaceToDepth", "a plane to more channels, [N, C, H, W]", "input:any", *_BLOCK,
        aten="view.default permute.default clone.default view.default"),
    row("Trilu", "the upper or lower triangle of matrices, the rest 0", "input:any",
        optional("upper", "bool", True), optional("k", "int", 0), aten="triu.default"),
    row("DynamicSlice", "a part of fixed size from starts that are moved inside",
        "input:any starts:index", required("sizes", "ints"), aten="slice.Tensor"),
    row("DynamicUpdate", "a part replaced from starts that are moved inside",
        "input:any update:same starts:index", aten="slice_scatter.default"),
)  # fmt: skip
