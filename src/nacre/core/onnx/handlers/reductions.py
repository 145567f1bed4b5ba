"""Operations of ONNX along axes."""

from __future__ import annotations

from nacre.core.onnx.handlers.shapes import normalise_axes
from nacre.core.onnx.handlers.table import Handler, handles
from nacre.core.onnx.onnx_node import OnnxNode

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


def _axes(node: OnnxNode) -> tuple[int, ...] | None:
    """The axes; none named means all, or nothing where `noop_with_empty_axes` says so."""
    axes = node.ints("axes", 1)
    rank = len(node.shape(0))
    if not axes:
        return None if node.attribute("noop_with_empty_axes", 0) else tuple(range(rank))
    return normalise_axes(axes, rank)


def _reduction(opcode: str, op: str | None) -> Handler:
    def handler(node: OnnxNode) -> int:
        axes, keepdims = _axes(node), bool(node.attribute("keepdims", 1))
        x, dtype = node.value(0), node.type(0).dtype
        if not axes:  # a scalar, or what `noop_with_empty_axes` is for
            return _elementwise(node, x, op)
        given = {} if op is None else {"op": _OF_TRUTH.get(op, op) if dtype == "bool" else op}
        reduced = node.add(opcode, x, axes=axes, keepdims=keepdims, **given)
        dims = node.shape(0)
        if keepdims:
            return node.reshape(reduced, [1 if a in axes else d for a, d in enumerate(dims)])
        return reduced

    return handler


def _elementwise(node: OnnxNode, x: int, op: str | None) -> int:
    """A reduction over no axis: a function of single elements."""
    if op == "SumSquare":
        return node.add("BinOp", x, x, op="Mul")
    if op in ("L1", "L2"):
        return node.add("Unary", x, op="Abs")
    if op == "LogSum":
        return node.add("Log", x)
    return x


for _name, _op in _REDUCE.items():
    handles(_name)(_reduction("Reduce", _op))
handles("ReduceSum")(_reduction("Sum", None))
handles("ReduceMean")(_reduction("Mean", None))


@handles("ArgMax", "ArgMin")
def argument(node: OnnxNode) -> int:
    """Where the largest or smallest element lies."""
    return node.add(
        node.op,
        node.value(0),
        axis=node.axis(default=0),
        keepdims=bool(node.attribute("keepdims", 1)),
        last=bool(node.attribute("select_last_index", 0)),
    )


@handles("CumSum", "CumProd")
def cumulative(node: OnnxNode) -> int:
    """The sum or product of the elements so far."""
    axis = node.require_known(1, "`axis`")
    flags = {name: bool(node.attribute(name, 0)) for name in ("exclusive", "reverse")}
    return node.add(node.op, node.value(0), axis=int(axis.ravel()[0]), **flags)
