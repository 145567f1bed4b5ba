"""A tree of programs: the most alike are joined first, by the mean distance of their members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nacre.nac.tools.genome import Genome, similarity

Distances = npt.NDArray[np.float64]
MOST_LEAVES = 200  # a tree may be as deep as it has leaves


@dataclass(frozen=True)
class Node:
    """A program, or two branches that meet at a height: half of the distance between them."""

    name: str
    height: float = 0.0
    children: tuple[Node, ...] = ()

    @property
    def leaves(self) -> tuple[str, ...]:
        """The programs below, from left to right."""
        if not self.children:
            return (self.name,)
        return tuple(name for child in self.children for name in child.leaves)


def distances(genomes: Sequence[Genome]) -> Distances:
    """1 minus the similarity, of each pair."""
    made = np.zeros((len(genomes), len(genomes)))
    for row, first in enumerate(genomes):
        for column in range(row):
            made[row, column] = made[column, row] = 1.0 - similarity(first, genomes[column])
    return made


def tree(names: Sequence[str], between: Distances) -> Node:
    """The tree of programs with such distances; of equal ones the first pair is joined."""
    nodes = [Node(name) for name in names]
    sizes = [1] * len(nodes)
    apart = between.astype(np.float64)
    np.fill_diagonal(apart, np.inf)
    while len(nodes) > 1:
        first, second = sorted(divmod(int(np.argmin(apart)), len(nodes)))
        height = max(float(apart[first, second]) / 2, nodes[first].height, nodes[second].height)
        joined = Node("", height, (nodes[first], nodes[second]))
        weight = np.array([sizes[first], sizes[second]])
        mean = np.average(apart[[first, second]], axis=0, weights=weight)
        apart[first], apart[:, first] = mean, mean
        apart[first, first] = np.inf
        apart = np.delete(np.delete(apart, second, axis=0), second, axis=1)
        nodes[first], sizes[first] = joined, int(weight.sum())
        del nodes[second], sizes[second]
    return nodes[0]


def newick(root: Node) -> str:
    """The tree as Newick text, with the lengths of branches."""
    return f"{_newick(root, None)};\n"


def _newick(node: Node, above: float | None) -> str:
    if node.children:
        inner = ",".join(_newick(child, node.height) for child in node.children)
        text = f"({inner})"
    else:
        text = _label(node.name)
    return text if above is None else f"{text}:{above - node.height:.6g}"


def _label(name: str) -> str:
    """In quotes: Newick gives meaning to blanks, brackets, colons and commas."""
    doubled = "".join(c if c.isprintable() else "?" for c in name).replace("'", "''")
    return f"'{doubled}'"
