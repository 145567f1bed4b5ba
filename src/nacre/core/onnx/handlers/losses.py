"""Losses of ONNX against classes."""

from __future__ import annotations

from math import prod

from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.arithmetic import Expr, operand
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode


@handles("NegativeLogLikelihoodLoss")
def negative_log_likelihood(node: OnnxNode) -> int:
    """Minus the entries [N, C, ..] of the classes [N, ..]."""
    return _loss(node, operand(node, 0)).value


@handles("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(node: OnnxNode) -> list[int]:
    """The same of the logarithms of Softmax, which are the second output."""
    logarithms = node.add("LogSoftmax", node.value(0), axis=1)
    return [_loss(node, Expr(node, logarithms)).value, logarithms]


def _loss(node: OnnxNode, x: Expr) -> Expr:
    dims, classes = node.shape(0), node.shape(1)
    if len(dims) < 2 or classes != (dims[0], *dims[2:]):
        raise Unsound(f"classes of shape {list(classes)} do not go with {list(dims)}")
    reduction = node.attribute("reduction", "mean")
    if reduction not in ("none", "sum", "mean"):
        raise Unsound(f"`reduction` is {backquote(reduction)}, expected none, sum or mean")
    target = operand(node, 1).to("i64")
    ignored = node.attribute("ignore_index", None)
    is_counted = None if ignored is None else target.is_("Ne", int(ignored))
    if is_counted is not None:
        target = is_counted.choose(target, 0)
    losses = _pick_classes(x, target)
    weights = _weights(node, x, target, is_counted)
    if is_counted is not None:  # not times 0: the entry may be infinite
        losses = is_counted.choose(losses, 0.0)
    if weights is not None:
        losses = losses * weights
    if reduction == "none":
        return losses
    axes = range(len(classes))
    total = losses.sum(axes)
    if reduction == "sum":
        return total
    return total / (float(prod(classes)) if weights is None else weights.sum(axes))


def _pick_classes(x: Expr, target: Expr) -> Expr:
    """Minus the entries of the classes."""
    batch, classes, *rest = x.shape
    count = prod(rest)
    flat, index = x.reshape(batch, classes, count), target.reshape(batch, 1, count)
    made = x.node.add("GatherElements", flat.value, index.value, axis=1)
    return Expr(x.node, x.node.add("Neg", made)).reshape(batch, *rest)


def _weights(node: OnnxNode, x: Expr, target: Expr, is_counted: Expr | None) -> Expr | None:
    """What each class counts; nothing where all count the same."""
    if node.has(2):
        weights = operand(node, 2).to(x.dtype).rows(target)
        return weights if is_counted is None else is_counted.choose(weights, 0.0)
    return None if is_counted is None else is_counted.to(x.dtype)
