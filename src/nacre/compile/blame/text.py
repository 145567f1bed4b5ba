"""Blame as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from nacre.base.excerpt import safe
from nacre.compile.accuracy.measures import Accuracy
from nacre.compile.blame.comparison import LayerPair, NodePair, PlanComparison
from nacre.compile.blame.result import Blame, Remedy, TensorNoise

MOST_TENSORS = 20
_LONGEST = 44
_HEAD = ("node", "layer", "operation", "in", "before", "adds", "weights", "after", "held", "scale")
_EXACT = 120.0  # dB, to sort by
_WIDTHS = (-_LONGEST, -16, -12, -4, 7, 7, 8, 7, 7, 12)


def blame_text(blame: Blame, most: int = MOST_TENSORS) -> str:
    """The tensors that add most, in the order of the plan; the first that is lost; remedies."""
    lines = [f"{blame.device}, {blame.precision}: {len(blame.tensors):,} tensors beside f32"]
    lines += _output_lines(blame.outputs)
    lines += ["", *_tensor_lines(blame, most), "", _first_line(blame)]
    if blame.remedies:
        lines += ["", *_remedy_lines(blame)]
    return "\n".join(lines)


def _output_lines(outputs: Sequence[Accuracy]) -> Iterator[str]:
    yield from (f"  output {safe(o.name)}: {o.describe_with_bound}" for o in outputs)
    yield from (f"  {safe(output.describe_problem)}" for output in outputs if output.problem)


def _tensor_lines(blame: Blame, most: int) -> Iterator[str]:
    chosen = set(map(id, blame.worst[:most]))
    shown = [tensor for tensor in blame.tensors if id(tensor) in chosen]
    count = len(blame.tensors)
    which = "all" if len(shown) == count else f"the {len(shown)} of {count:,} that add most"
    yield f"noise in dB of signal over it ({which}; `-` is exact):"
    yield _row(_HEAD)
    for tensor in shown:
        yield _row(_cells(tensor))
        yield from (f"    {safe(change)}" for change in tensor.changes)


def _cells(tensor: TensorNoise) -> tuple[str, ...]:
    scale = "" if tensor.scale is None else f"{tensor.scale:.4g}, {tensor.zero}"
    return (
        _shorten_name(safe(tensor.node)),
        safe(tensor.layer) or "-",
        tensor.opcode,
        tensor.elem,
        ratio_text(tensor.before),
        ratio_text(tensor.added),
        "" if tensor.weights is None else ratio_text(tensor.weights),
        ratio_text(tensor.after),
        f"{100 * tensor.saturated:.1f} %",
        scale,
    )


def _row(cells: tuple[str, ...]) -> str:
    columns = zip(cells, _WIDTHS, strict=True)
    return (
        "  " + " ".join(f"{cell:<{-w}}" if w < 0 else f"{cell:>{w}}" for cell, w in columns)
    ).rstrip()


def _shorten_name(name: str) -> str:
    """The end of a long name: that is where names of nodes differ."""
    return name if len(name) <= _LONGEST else f"...{name[3 - _LONGEST :]}"


def ratio_text(ratio: float) -> str:
    """A ratio in dB, of what is exact or lost a word."""
    if abs(ratio) == inf:
        return "-" if ratio > 0 else "lost"
    return f"{ratio:.1f}"


def _first_line(blame: Blame) -> str:
    first = blame.first_divergence
    if first is None:
        return f"no tensor has less than {blame.least:g} dB"
    return (
        f"first below {blame.least:g} dB: {safe(first.node)} ({first.layer or 'a view'}), from "
        f"{ratio_text(first.before)} to {ratio_text(first.after)}"
    )


def _remedy_lines(blame: Blame) -> Iterator[str]:
    yield f"kept in f16, beside {blame.cycles or 0:,} cycles with scales from {blame.ranges}:"
    for remedy in blame.remedies:
        share = 100 * remedy.cycles / (blame.cycles or 1)
        yield (
            f"  {_shorten_name(safe(remedy.node)):<{_LONGEST}} {remedy.cycles:+,} cycles "
            f"({share:+.1f} %), {_gains_text(remedy)}"
        )


def _gains_text(remedy: Remedy) -> str:
    return ", ".join(f"{safe(name)} {gain:+.1f} dB" for name, gain in remedy.gains.items())


# Two plans


def comparison_text(found: PlanComparison, names: tuple[str, str], most: int = MOST_TENSORS) -> str:
    """Both plans in a few figures, the nodes that differ most, the layers that cost most."""
    lines = []
    for mark, name, plan in zip("AB", names, found.plans, strict=True):
        lines.append(
            f"{mark}: {safe(name)}, {plan.device}, {plan.precision}: {plan.cycles:,} cycles, "
            f"{plan.weight_bytes:,} bytes of weights"
        )
        lines += _output_lines(plan.outputs)
    lines += ["", *_node_lines(found, most), "", *_layer_lines(found, most)]
    return "\n".join(lines)


def _node_lines(found: PlanComparison, most: int) -> Iterator[str]:
    apart = sorted(found.nodes, key=_distance, reverse=True)[:most]
    chosen = set(map(id, apart))
    count = f"the {len(apart)} of {len(found.nodes):,} that differ most"
    yield f"what is left of each node in dB ({count}):"
    yield f"  {'node':<{_LONGEST}} {'A':>12} {'B':>12}"
    for node in found.nodes:
        if id(node) in chosen:
            name = _shorten_name(safe(node.node))
            yield f"  {name:<{_LONGEST}} {_side(node, 0):>12} {_side(node, 1):>12}"


def _distance(node: NodePair) -> float:
    a, b = node.ratios
    if a is None or b is None:
        return 0.0
    return abs(max(min(a, _EXACT), -_EXACT) - max(min(b, _EXACT), -_EXACT))


def _side(node: NodePair, side: int) -> str:
    ratio = node.ratios[side]
    return "not there" if ratio is None else f"{ratio_text(ratio)} {node.elems[side]}"


def _layer_lines(found: PlanComparison, most: int) -> Iterator[str]:
    first = sorted(found.layers, key=_cycle_difference, reverse=True)[:most]
    yield f"cycles (the {len(first)} of {len(found.layers):,} groups of layers that differ most):"
    yield f"  {'nodes':<{_LONGEST}} {'A':>12} {'B':>12} {'B - A':>12}"
    for layer in first:
        more = f" and {len(layer.nodes) - 1} more" if len(layer.nodes) > 1 else ""
        name = _shorten_name(safe(layer.nodes[0]) + more)
        a, b = layer.cycles
        yield f"  {name:<{_LONGEST}} {a:>12,} {b:>12,} {b - a:>+12,}"


def _cycle_difference(layer: LayerPair) -> int:
    return abs(layer.cycles[1] - layer.cycles[0])
