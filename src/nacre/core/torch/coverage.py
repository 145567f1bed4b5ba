"""What of a PyTorch program can be brought in, operation by operation."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from nacre.base.diagnostics import InputError
from nacre.core.importing.coverage import Coverage, Row
from nacre.core.torch.checks import CHECKS
from nacre.core.torch.exporting import program_of
from nacre.core.torch.importer import walk_graph
from nacre.core.torch.nodes import key_of


def coverage(
    source: Any,  # noqa: ANN401 - a module, a program, a path
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    example_args: Sequence[Any] = (),
    example_kwargs: Mapping[str, Any] | None = None,
) -> Coverage:
    """The coverage of a `.pt2` file, a program or a module, after PyTorch has decomposed it.

    InputError where it is no sound program at all.
    """
    exported = program_of(source, example_args, example_kwargs, shapes)
    walk, _ = walk_graph(exported, shapes)
    unsound = [d for d in walk.findings if d.code != "TCH01"]
    if unsound:
        raise InputError(unsound)
    graph = exported[0].graph_module.graph
    calls = [node for node in graph.nodes if node.op == "call_function"]
    counted = Counter(key_of(node.target) for node in calls if node.target is not operator.getitem)
    reasons: dict[str, Counter[str]] = {}
    for refusal in walk.refused:
        reasons.setdefault(key_of(refusal.node.target), Counter())[refusal.reason] += 1
    for operation, counts in reasons.items():
        counted[operation] = max(counted[operation], sum(counts.values()))
    rows = [
        Row(op, count, dict(reasons.get(op, {})))
        for op, count in counted.items()
        if op not in CHECKS
    ]
    rows.sort(key=lambda row: (-row.refused, -row.nodes, row.operation))
    return Coverage(tuple(rows), walk.lost)
