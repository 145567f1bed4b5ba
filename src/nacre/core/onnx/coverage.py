"""What of an ONNX model can be brought in, operation by operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import safe
from nacre.core.onnx.importer import walked
from nacre.core.onnx.nodes import STANDARD


@dataclass(frozen=True)
class Row:
    """One operation: how often it stands in the model, and why nodes of it are refused."""

    operation: str
    nodes: int
    reasons: Mapping[str, int]  # how often each

    @property
    def refused(self) -> int:
        """How many nodes are refused."""
        return sum(self.reasons.values())


@dataclass(frozen=True)
class Coverage:
    """The operations of a model, the refused ones first."""

    rows: tuple[Row, ...]
    lost: int  # nodes that could not be looked at, for they follow refused ones

    @property
    def is_whole(self) -> bool:
        """Whether every node can be brought in."""
        return not any(row.refused for row in self.rows)

    def as_text(self) -> str:
        """A table."""
        width = max([9, *(len(row.operation) for row in self.rows)])
        lines = [f"{'operation':{width}} {'nodes':>6} {'refused':>8}  why"]
        for row in self.rows:
            head = f"{row.operation:{width}} {row.nodes:>6} {row.refused or '-':>8}"
            told = [f"{count} times: {reason}" if count > 1 else reason
                    for reason, count in row.reasons.items()] or [""]  # fmt: skip
            lines.append(f"{head}  {safe(told[0])}".rstrip())
            lines += [f"{'':{width + 18}}{safe(reason)}" for reason in told[1:]]
        total = sum(row.nodes for row in self.rows)
        refused = sum(row.refused for row in self.rows)
        verdict = "all can be brought in" if self.is_whole else f"{refused} refused"
        tail = f", {self.lost} behind them not looked at" if self.lost else ""
        return "\n".join([*lines, "", f"{total} nodes: {verdict}{tail}"])


def coverage(
    source: Path,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
) -> Coverage:
    """The coverage of a model. InputError where it is no sound model at all."""
    walk, graph = walked(source, shapes, constants)
    unsound = [d for d in walk.found if d.code != "ONX01"]
    if unsound:
        raise InputError(unsound)
    counted: Counter[str] = Counter(map(_key, graph.node))
    reasons: dict[str, Counter[str]] = {}
    for refusal in walk.refused:
        reasons.setdefault(refusal.node.key, Counter())[refusal.reason] += 1
    for operation, found in reasons.items():  # those inside of graphs and functions too
        counted[operation] = max(counted[operation], sum(found.values()))
    rows = [Row(op, count, dict(reasons.get(op, {}))) for op, count in counted.items()]
    rows.sort(key=lambda row: (-row.refused, -row.nodes, row.operation))
    return Coverage(tuple(rows), _lost(walk.refused, graph))


def _key(proto: Any) -> str:  # noqa: ANN401 - onnx.NodeProto
    name: str = proto.op_type
    return name if proto.domain in STANDARD else f"{proto.domain}.{name}"


def _lost(refused: Sequence[Any], graph: Any) -> int:  # noqa: ANN401 - onnx.GraphProto
    """How many nodes use, in whatever way, what a refused one should have made."""
    missing = {name for refusal in refused for name in refusal.node.outputs}
    count = 0
    for proto in graph.node:
        if missing & set(proto.input):
            missing |= set(proto.output)
            count += 1
    return count
