"""The largest losses of a plan in words: `nacre estimate --why`."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from nacre.base.excerpt import safe
from nacre.compile.estimate.layer_times import LayerTime
from nacre.compile.estimate.losses import KINDS, Loss, Losses

_MOST = 3
_WIDTH = 100


def losses_text(device: str, found: Losses, layers: Sequence[LayerTime]) -> str:
    """Bounds and losses add up to the run; then each kind, and the largest with their remedies."""
    lost = sum(loss.cycles for loss in found.losses)
    cycles = found.bound + lost - found.hidden
    lines = [
        f"why {cycles:,} cycles on {safe(device)}: bounds of layers {found.bound:,}, "
        f"lost {lost:,}, hidden behind other layers {found.hidden:,}"
    ]
    by_kind: Counter[str] = Counter()
    for loss in found.losses:
        by_kind[loss.kind] += loss.cycles
    for kind, count in by_kind.most_common():
        lines.append(f"  {count:>12,}  {kind}: {KINDS[kind].meaning}")
    operations = {layer.name: " + ".join(layer.main_operations) for layer in layers}
    if found.losses:
        lines.append("the largest")
    for number, loss in enumerate(found.losses[:_MOST], 1):
        lines += _loss_lines(number, loss, operations)
    return "\n".join(lines)


def _loss_lines(number: int, loss: Loss, operations: dict[str, str]) -> Iterator[str]:
    where = f"{safe(loss.layer)} ({safe(operations[loss.layer])})" if loss.layer else "no layer"
    unit = f", {loss.unit}" if loss.unit else ""
    yield _wrap(f"{number}. {where}: {loss.cycles:,} cycles, {loss.kind}{unit}", "  ")
    yield _wrap(f"{KINDS[loss.kind].meaning}; what helps: {loss.remedy}", "     ")


def _wrap(line: str, indent: str) -> str:
    return textwrap.fill(line, _WIDTH, initial_indent=indent, subsequent_indent="     ")
