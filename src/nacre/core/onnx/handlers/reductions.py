"""Operations of ONNX along axes."""

from __future__ import annotations

from nacre.core.onnx.handlers.shapes import normalise_axes
from nacre.core.onnx.handlers.table import Handler, handles
from nacre.core.onnx.use import OnnxNode

_REDUCE = {
    "ReduceMax": "Max",
    "ReduceMin": "Min",
    "ReduceProd": "Prod",
    "ReduceSumSquare": "SumSquare",
    "ReduceL1": "L1",
    "ReduceL2": "L2",
    "ReduceLogSum": "LogSum",
    "ReduceLogSumExp": "LogSumExp",
}

_OF_TRUTH = {"Max": "Any", "Min": "All"}


def _axes(use: OnnxNode) -> tuple[int, ...] | None:
    """The axes; none named means all, or nothing where `noop_with_empty_axes` says so."""
    axes = use.ints("axes", 1)
    rank = len(use.shape(0))
    if not axes:
        return None if use.attribute("noop_with_empty_axes", 0) else tuple(range(rank))
    return normalise_axes(axes, rank)


def _reduction(opcode: str, op: str | None) -> Handler:
    def handler(use: OnnxNode) -> int:
        axes, keepdims = _axes(use), bool(use.attribute("keepdims", 1))
        x, dtype = use.value(0), use.type(0).dtype
        if not axes:  # a scalar, or what `noop_with_empty_axes` is for
            return _elementwise(use, x, op)
        given = {} if op is None else {"op": _OF_TRUTH.get(op, op) if dtype == "bool" else op}
        made = use.add(opcode, x, axes=axes, keepdims=keepdims, **given)
        dims = use.shape(0)
        if keepdims:
            return use.reshape(made, [1 if a in axes else d for a, d in enumerate(dims)])
        return made

    return handler


def _elementwise(use: OnnxNode, x: int, op: str | None) -> int:
    """A reduction over no axis: a function of single elements."""
    if op == "SumSquare":
        return use.add("BinOp", x, x, op="Mul")
    if op in ("L1", "L2"):
        return use.add("Unary", x, op="Abs")
    if op == "LogSum":
        return use.add("Log", x)
    return x


for _name, _op in _REDUCE.items():
    handles(_name)(_reduction("Reduce", _op))
handles("ReduceSum")(_reduction("Sum", None))
handles("ReduceMean")(_reduction("Mean", None))


@handles("ArgMax", "ArgMin")
def argument(use: OnnxNode) -> int:
    """Where the largest or smallest element lies."""
    return use.add(
        use.node.op,
        use.value(0),
        axis=use.axis(default=0),
        keepdims=bool(use.attribute("keepdims", 1)),
        last=bool(use.attribute("select_last_index", 0)),
    )


@handles("CumSum", "CumProd")
def cumulative(use: OnnxNode) -> int:
    """The sum or product of the elements so far."""
    axis = use.require_known(1, "`axis`")
    flags = {name: bool(use.attribute(name, 0)) for name in ("exclusive", "reverse")}
    return use.add(use.node.op, use.value(0), axis=int(axis.ravel()[0]), **flags)
