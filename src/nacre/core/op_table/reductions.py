"""Operations of `nacre-1` along axes."""

from __future__ import annotations

from nacre.core.specs import Accepts, fixed_type, optional, required, row

_REDUCE = {
    "Max": "amax.default", "Min": "amin.default", "Prod": "prod.dim_int",
    "SumSquare": "mul.Tensor sum.dim_IntList", "L1": "abs.default sum.dim_IntList",
    "L2": "linalg_vector_norm.default", "LogSum": "sum.dim_IntList log.default",
    "LogSumExp": "logsumexp.default", "Any": "any.dims", "All": "all.dims",
}  # fmt: skip
_ACCEPTED: dict[str, Accepts] = {
    **dict.fromkeys(_REDUCE, "number"),
    **dict.fromkeys(("L2", "LogSum", "LogSumExp"), "float"),
    **dict.fromkeys(("Any", "All"), "bool"),
}

_AXIS = required("axis", "int")
_KEEPDIMS = optional("keepdims", "bool", False)
_LAST = optional("last", "bool", False)

REDUCTIONS = (
    row("Reduce", "a reduction over axes; over all where none is named", "input:any",
        required("op", "word", *_REDUCE), required("axes", "ints"), _KEEPDIMS,
        traits=("reduction",), aten=_REDUCE, by_op=_ACCEPTED),
    row("ArgMax", "where the largest element lies; the first of several, or the last",
        "input:number", _AXIS, _KEEPDIMS, _LAST, result=fixed_type("i64"),
        traits=("reduction", "flat"), aten="argmax.default"),
    row("ArgMin", "where the smallest element lies; the first of several, or the last",
        "input:number", _AXIS, _KEEPDIMS, _LAST, result=fixed_type("i64"),
        traits=("reduction", "flat"), aten="argmin.default"),
    row("CumSum", "the sum of the elements so far", "input:number", _AXIS,
        optional("exclusive", "bool", False), optional("reverse", "bool", False),
        aten="cumsum.default"),
    row("CumProd", "the product of the elements so far", "input:number", _AXIS,
        optional("exclusive", "bool", False), optional("reverse", "bool", False),
        aten="cumprod.default"),
)  # fmt: skip
