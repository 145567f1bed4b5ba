"""A program as a graph: a node a call or an input, its words, and the operands that runs compute.

Loads of weights and constants, and what follows from them alone, are no nodes: a sum with a weight
is a shift, a product with one a layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from nacre.nac.format.values import Instruction
from nacre.nac.genome.vocabulary import BY_CONSTANTS, KINDS_OF_CONVOLUTION, MOVE, WORDS
from nacre.nac.spec.instructions import CONTROL_FLOW, CONVERGENCE, INPUT, STATE, USER
from nacre.nac.tools.genome import gene
from nacre.nac.tools.opening import OpenedFile, true_shape

_LEAST_PATCH = 4  # a window that is stepped by its own size, from this size on
_LEAST_RANK = 3  # of the weights of a convolution
_MOST_MOVES = 16  # in a row, that a pattern is said to have


@dataclass(frozen=True)
class GraphNode:
    """An operation: where it stands in the program, its words, and what it takes of other nodes."""

    index: int
    words: tuple[str, ...]
    operands: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """Its own word, or what a convolution's weights make of it."""
        return self.words[-1] if self.words[-1] in KINDS_OF_CONVOLUTION else self.words[0]

    @property
    def is_move(self) -> bool:
        """Whether it only moves elements."""
        return self.words[0] == MOVE


@dataclass(frozen=True)
class ProgramGraph:
    """The nodes of a program, each behind its operands."""

    name: str
    nodes: tuple[GraphNode, ...]

    @cached_property
    def by_index(self) -> dict[int, GraphNode]:
        """The nodes by their instructions."""
        return {node.index: node for node in self.nodes}

    @cached_property
    def origins(self) -> dict[int, int]:
        """Where the elements of each node come from: the first node before it that is no move."""
        made: dict[int, int] = {}
        for node in self.nodes:
            made[node.index] = made[node.operands[0]] if node.is_move else node.index
        return made

    def moves_before(self, index: int) -> frozenset[int]:
        """The moves between a node and its origin, a few of them."""
        moves: list[int] = []
        while self.origins[index] != index and len(moves) < _MOST_MOVES:
            moves.append(index)
            index = self.by_index[index].operands[0]
        return frozenset(moves)


def graph_of(opened: OpenedFile, name: str = "") -> ProgramGraph:
    """The graph of a file."""
    nodes: dict[int, GraphNode] = {}
    for index, instruction in enumerate(opened.file.instructions):
        made = _node(opened, index, instruction, nodes)
        if made is not None:
            nodes[index] = made
    return ProgramGraph(name or opened.name, tuple(nodes.values()))


def _node(
    opened: OpenedFile, index: int, instruction: Instruction, nodes: dict[int, GraphNode]
) -> GraphNode | None:
    if instruction.is_system:
        is_given = instruction.op == INPUT and instruction.variant in (USER, STATE)
        if is_given or instruction.op in (CONTROL_FLOW, CONVERGENCE):
            return GraphNode(index, ("input",))
        return None
    operands = tuple(index + offset for offset in instruction.d if index + offset in nodes)
    if not operands:
        return None
    called = gene(opened.file.name_of.get(instruction.op, f"op_{instruction.op}"))
    words = WORDS.get(called, (called,))
    if words[0] == "conv":
        words = (*words, *_kinds_of_convolution(opened, index, instruction))
    if len(operands) == 1:
        words = BY_CONSTANTS.get(words[0], words)
    return GraphNode(index, words, operands)


def _kinds_of_convolution(
    opened: OpenedFile, index: int, instruction: Instruction
) -> Iterator[str]:
    """`depthwise`, `pointwise`, `patch` or `spatial`, where the weights are in the file."""
    shape = weight_shape(opened, index, instruction)
    if len(shape) < _LEAST_RANK:
        return
    window = shape[2:]
    if shape[1] == 1 and shape[0] > 1 and _groups(opened, instruction) > 1:
        yield "depthwise"
    elif all(size == 1 for size in window):
        yield "pointwise"
    elif min(window) >= _LEAST_PATCH and window == strides_of(opened, instruction, len(window)):
        yield "patch"
    else:
        yield "spatial"


def weight_shape(opened: OpenedFile, index: int, instruction: Instruction) -> tuple[int, ...]:
    """The shape of the weight of a layer; () where it is no parameter."""
    if len(instruction.d) < 2 or not instruction.d[1]:
        return ()
    load = index + instruction.d[1]
    if not 0 <= load < len(opened.file.instructions):
        return ()
    loading = opened.file.instructions[load]
    tensor = opened.tensors.get(loading.c[1]) if len(loading.c) > 1 else None
    return true_shape(tensor) if tensor is not None else ()


def _constants(opened: OpenedFile, instruction: Instruction) -> list[object]:
    """The arguments of a call that are constants, in their order."""
    known = opened.file.constant_of
    return [known[id_].value for id_ in instruction.c[1:] if id_ in known]


def strides_of(opened: OpenedFile, instruction: Instruction, rank: int) -> tuple[int, ...]:
    """The first list among the constants of a convolution; of one element it is for all axes."""
    lists = [v for v in _constants(opened, instruction) if isinstance(v, tuple)]
    stride = tuple(int(v) for v in lists[0]) if lists else (1,)
    return stride * rank if len(stride) == 1 else stride


def _groups(opened: OpenedFile, instruction: Instruction) -> int:
    """The last number among the constants of a convolution."""
    numbers = [v for v in _constants(opened, instruction) if type(v) is int]
    return numbers[-1] if numbers else 1
