"""What operations that hold graphs ask of the walk, and how far they may go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from nacre.core.onnx.findings import NoForm
from nacre.core.onnx.model_builder import ModelBuilder
from nacre.core.onnx.use import Tensor

MOST_NODES = 100_000  # of graphs and functions inside nodes, each counted as often as it is walked
MOST_DEPTH = 48


class Lost:
    """Stands for a tensor that a refused node should have made."""


class Reported(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A node cannot be brought in because of what is inside it, which has been reported."""


class Spent(NoForm):
    """A node holds more than can be laid out flat."""


@dataclass(eq=False)
class Allowance:
    """How many nodes inside of others may still be walked."""

    left: int = field(default_factory=lambda: MOST_NODES)

    def take(self) -> None:
        """Use one up."""
        if self.left <= 0:
            raise Spent(f"laid out flat, the model has more than {MOST_NODES:,} inner nodes")
        self.left -= 1


class Scope(Protocol):
    """The part of the walk that operations with graphs see."""

    builder: ModelBuilder

    def nested(self, graph: Any, given: Sequence[Tensor]) -> list[Tensor]:  # noqa: ANN401
        """The outputs of a graph that sees the tensors around it; Reported where it has none."""
        ...
