"""How much of a model can be brought in, operation by operation, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nacre.base.excerpt import safe


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
    notes: tuple[str, ...] = ()  # what is odd about the model, but does not stand in the way

    @property
    def is_whole(self) -> bool:
        """Whether every node can be brought in."""
        return not any(row.refused for row in self.rows)

    def as_text(self) -> str:
        """A table."""
        names = [safe(row.operation) for row in self.rows]
        width = max([9, *map(len, names)])
        lines = [f"{'operation':{width}} {'nodes':>6} {'refused':>8}  why"]
        for name, row in zip(names, self.rows, strict=True):
            head = f"{name:{width}} {row.nodes:>6} {row.refused or '-':>8}"
            reasons = [f"{count} times: {reason}" if count > 1 else reason
                    for reason, count in row.reasons.items()] or [""]  # fmt: skip
            lines.append(f"{head}  {safe(reasons[0])}".rstrip())
            lines += [f"{'':{width + 18}}{safe(reason)}" for reason in reasons[1:]]
        total = sum(row.nodes for row in self.rows)
        refused = sum(row.refused for row in self.rows)
        verdict = "all can be brought in" if self.is_whole else f"{refused} refused"
        tail = f", {self.lost} behind them not looked at" if self.lost else ""
        notes = [f"note: {safe(note)}" for note in self.notes]
        return "\n".join([*lines, "", f"{total} nodes: {verdict}{tail}", *notes])
