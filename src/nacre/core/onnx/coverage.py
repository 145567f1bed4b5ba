"""What of an ONNX model can be brought in, operation by operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from nacre.base.diagnostics import InputError
from nacre.core.importing.coverage import Coverage, Row
from nacre.core.onnx.importer import walk_model
from nacre.core.onnx.reading.nodes import STANDARD


def coverage(
    source: Path,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
) -> Coverage:
    """The coverage of a model. InputError where it is no sound model at all."""
    walk, graph = walk_model(source, shapes, constants)
    # Inputs without a form stop the walk, as what breaks ONNX's rules does.
    of_nodes = {id(refusal.diagnostic) for refusal in walk.refused}
    unsound = [d for d in walk.findings if id(d) not in of_nodes]
    if unsound:
        raise InputError(unsound)
    counted: Counter[str] = Counter(map(_key, graph.node))
    reasons: dict[str, Counter[str]] = {}
    for refusal in walk.refused:
        reasons.setdefault(refusal.node.key, Counter())[refusal.reason] += 1
    for operation, counts in reasons.items():  # those inside of graphs and functions too
        counted[operation] = max(counted[operation], sum(counts.values()))
    rows = [Row(op, count, dict(reasons.get(op, {}))) for op, count in counted.items()]
    rows.sort(key=lambda row: (-row.refused, -row.nodes, row.operation))
    notes = tuple(d.message for d in walk.odd)
    return Coverage(tuple(rows), _count_dependents(walk.refused, graph), notes)


def _key(proto: Any) -> str:  # noqa: ANN401 - onnx.NodeProto
    name: str = proto.op_type
    return name if proto.domain in STANDARD else f"{proto.domain}.{name}"


def _count_dependents(refused: Sequence[Any], graph: Any) -> int:  # noqa: ANN401 - onnx.GraphProto
    """How many nodes use, in whatever way, what a refused one should have made."""
    missing = {name for refusal in refused for name in refusal.node.outputs}
    count = 0
    for proto in graph.node:
        if missing & set(proto.input):
            missing |= set(proto.output)
            count += 1
    return count
