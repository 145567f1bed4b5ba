"""A program as a row of tiles: the blocks that it is made of, one behind the other.

Values that every path from the input to the output passes are cuts. A pattern that takes one cut
and ends at another is a tile; of all ways to lay tiles from end to end the one with the fewest is
taken, and steps for which there is no block are left open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from nacre.core.module import TensorType
from nacre.nac.genome.corpus import CorpusProgram, corpus_program
from nacre.nac.genome.graph import GraphNode
from nacre.nac.program.lift import Types, result_types
from nacre.nac.run.model import NacModel
from nacre.nac.spec.instructions import OUTPUT
from nacre.nac.synthesis.blocks import BLOCKS, CLASSIFIER
from nacre.nac.tools.opening import OpenedFile

OPEN = ""  # the name of a step that no block explains
MEAN = "Mean"
LINEAR = "Linear"
_OPEN_COST = 4  # as many tiles as an open step is worth avoiding

# Steps of a few operations that have no name in the library, by their words.
_STEPS = (
    ("LinearBlock", ("linear", "act")),
    ("DepthwiseConv", ("depthwise", "norm", "act")),
    ("DepthwiseConv", ("depthwise", "act")),
    ("Conv", ("conv", "norm")),
    ("Conv", ("conv",)),
    ("Pool", ("pool",)),
    ("Norm", ("norm",)),
    ("Position", ("shift",)),
    (MEAN, ("mean",)),
    (LINEAR, ("linear",)),
)


@dataclass(frozen=True)
class Tile:
    """A block in a program: its name, the cut that it takes, where it ends, all of its nodes."""

    block: str
    start: int  # places among the cuts
    end: int
    nodes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Specimen:
    """A program with the types of its results: what a grammar is learned from."""

    program: CorpusProgram
    opened: OpenedFile
    types: dict[int, list[TensorType]]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.program.name

    def node(self, index: int) -> GraphNode:
        """The node of an instruction."""
        return self.program.graph.by_index[index]

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of what an instruction makes; () where it makes several or none."""
        made = self.types.get(index, [])
        return made[0].shape if len(made) == 1 else ()

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """The nodes that every path passes and that compute something, the input first."""
        return _cuts(self)

    @cached_property
    def tiles(self) -> tuple[Tile, ...]:
        """The fewest tiles from end to end."""
        return _fewest(len(self.cuts), _candidates(self))


def specimen(
    name: str, opened: OpenedFile, model: NacModel, types: Types | None = None
) -> Specimen:
    """A file to learn from; InputError where the types of its results do not follow."""
    return Specimen(corpus_program(name, opened), opened, result_types(model, types))


def _cuts(one: Specimen) -> tuple[int, ...]:
    """Nodes that no edge between nodes on the way from an input to the output passes over."""
    graph = one.program.graph
    last = _returned(one)
    if last not in graph.by_index:
        return ()
    needed = {last}
    for node in reversed(graph.nodes):
        if node.index in needed:
            needed.update(node.operands)
    way = [node for node in graph.nodes if node.index in needed]
    if sum(not node.operands for node in way) != 1:
        return ()  # several inputs: no one row
    reach = way[0].index
    made = []
    farthest = {node.index: node.index for node in way}
    for node in way:
        for operand in node.operands:
            farthest[operand] = max(farthest[operand], node.index)
    for node in way:
        if reach <= node.index and not node.is_move:
            made.append(node.index)
        reach = max(reach, farthest[node.index])
    return tuple(made)


def _returned(one: Specimen) -> int:
    """The first operand of the program's end."""
    for index, instruction in enumerate(one.opened.file.instructions):
        if instruction.is_system and instruction.op == OUTPUT and instruction.variant == 0:
            return index + instruction.d[0] if instruction.d else -1
    return -1


def _candidates(one: Specimen) -> Iterator[Tile]:
    """Every tile that could lie somewhere, those with more precise names first."""
    place = {index: at for at, index in enumerate(one.cuts)}
    order = {name: at for at, name in enumerate((*reversed(list(BLOCKS)), CLASSIFIER))}
    found = [o for o in one.program.occurrences if o.pattern in order and len(o.inputs) == 1]
    for occurrence in sorted(found, key=lambda o: order[o.pattern]):
        if occurrence.pattern == "ConvBlock" and any(
            _is_depthwise(one, i) for i in occurrence.nodes
        ):
            continue
        start, end = place.get(occurrence.inputs[0]), place.get(occurrence.root)
        if start is not None and end is not None and start < end:
            yield Tile(occurrence.pattern, start, end, tuple(sorted(occurrence.nodes)))
    yield from _steps(one)


def _steps(one: Specimen) -> Iterator[Tile]:
    acts = {o.root: o for o in one.program.occurrences if o.role == "act"}
    for at in range(len(one.cuts) - 1):
        for block, words in _STEPS:
            nodes = one.cuts[at + 1 : at + 1 + len(words)]
            if len(nodes) == len(words) and all(
                _is_step(one, one.cuts[at + i], index, word, index in acts)
                for i, (index, word) in enumerate(zip(nodes, words, strict=True))
            ):
                yield Tile(block, at, at + len(words), nodes)


def _is_step(one: Specimen, before: int, index: int, word: str, is_act: bool) -> bool:
    """Whether a node does one thing to the cut before it; an activation may be several nodes."""
    node = one.node(index)
    if word == "act" and is_act:
        return True
    origins = {one.program.graph.origins[operand] for operand in node.operands}
    is_dense = word != "conv" or not _is_depthwise(one, index)
    return word in node.words and origins == {before} and is_dense


def _is_depthwise(one: Specimen, index: int) -> bool:
    return one.node(index).label == "depthwise"


def _fewest(count: int, candidates: Iterator[Tile]) -> tuple[Tile, ...]:
    """Tiles from the first cut to the last; of equal ways that whose tiles were named first."""
    ending: dict[int, list[Tile]] = {}
    for tile in candidates:
        ending.setdefault(tile.end, []).append(tile)
    best: list[tuple[int, Tile | None]] = [(0, None)]
    for end in range(1, count):
        tiles = [*ending.get(end, ()), Tile(OPEN, end - 1, end)]
        costs = [best[t.start][0] + (1 if t.block else _OPEN_COST) for t in tiles]
        least = costs.index(min(costs))
        best.append((costs[least], tiles[least]))
    return tuple(_back(best))[::-1]


def _back(best: Sequence[tuple[int, Tile | None]]) -> Iterator[Tile]:
    at = len(best) - 1
    while at > 0:
        tile = best[at][1]
        assert tile is not None
        yield tile
        at = tile.start
