"""What operations that hold graphs ask of the walk, and how far they may go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from nacre.core.importing.model_builder import ModelBuilder
from nacre.core.module import TensorType
from nacre.core.onnx.onnx_node import Tensor
from nacre.core.unsupported import Unsupported

MOST_NODES = 100_000  # of graphs and functions inside nodes, each counted as often as it is walked
MOST_DEPTH = 48


class LostTensor:
    """Stands for a tensor that a refused node should have made."""


class AlreadyReported(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A node cannot be brought in because of what is inside it, which has been reported.

    It carries what there is of the tensors inside, by name.
    """

    def __init__(self, tensors: Mapping[str, object] = MappingProxyType({})) -> None:
        super().__init__()
        self.tensors = tensors


class DataDependentLoop(Unsupported):
    """A loop that data ends: this comes before what its body lacks, which would not help."""


class TooManyNodes(Unsupported):
    """A node holds more than can be laid out flat."""


@dataclass(eq=False)
class Allowance:
    """How many nodes inside of others may still be walked."""

    left: int = field(default_factory=lambda: MOST_NODES)
    # How often the graph at hand will be walked, where all loops around it are in their first
    # round and are known to go on; else 0.
    rounds: int = 1

    def take(self) -> None:
        """Use one up."""
        if self.left <= 0:
            raise _too_many_nodes()
        self.left -= 1

    def expect(self, count: int) -> None:
        """Refuse early what would use up more than there is."""
        if count > self.left:
            raise _too_many_nodes()

    @contextmanager
    def round_of(self, count: int) -> Iterator[None]:
        """One round of a loop. In the first of `count`, all the others are accounted for."""
        before, around = self.left, self.rounds
        self.rounds *= count
        try:
            yield
            if (before - self.left) * self.rounds > before:
                raise _too_many_nodes()
        finally:
            self.rounds = around


def _too_many_nodes() -> TooManyNodes:
    reason = f"laid out flat, the model has more than {MOST_NODES:,} inner nodes"
    return TooManyNodes(reason, "run loops fewer times, or import a part of the model")


class Scope(Protocol):
    """The part of the walk that operations with graphs see."""

    builder: ModelBuilder
    allowance: Allowance

    def nested(
        self,
        graph: Any,  # noqa: ANN401 - onnx.GraphProto
        given: Sequence[Tensor],
        is_run: bool = True,
    ) -> list[Tensor]:
        """The outputs of a graph that sees the tensors around it; Reported where it has none.

        One that not every run comes to may hold what fails: the run that comes to it says so.
        """
        ...

    def types_of(self, graph: Any, given: Sequence[Tensor]) -> list[TensorType] | None:  # noqa: ANN401
        """The types of the outputs of a graph, which itself is left out; None where it has none."""
        ...
