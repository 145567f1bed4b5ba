from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import product
from math import isclose, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.nac import read
from nacre.nac.tools.genome import Genome, gene, genome, similarity
from nacre.nac.tools.phylogeny import Node, distances, newick, tree
from nacre.nac.tools.tree_picture import picture
from tests.nac.files import FOLDER

GENES = st.lists(st.sampled_from(["conv", "norm", "relu", "add"]), max_size=40).map(tuple)


def made(text: str, name: str = "g") -> Genome:
    return Genome(name, tuple(text.split()))


def test_genes_are_calls_without_loads_and_overloads() -> None:
    taken = genome("mlp", read(FOLDER / "mlp.none.v16.nac"))
    assert taken.genes == ("linear", "relu", "linear", "tanh", "linear")
    assert [gene(n) for n in ("nac.add", "aten.add.Tensor", "core.Gelu", "nac.pass", "custom")] == [
        "add", "add", "core.Gelu", "nac.pass", "custom",
    ]  # fmt: skip


def test_blocks_of_a_network_are_found() -> None:
    (block,) = genome("cnn", read(FOLDER / "cnn.none.v16.shim.nac")).blocks
    assert block.genes == ("conv2d", "_native_batch_norm_legit_no_training", "relu")
    deep = made("stem " + "conv norm relu conv norm add relu " * 5 + "pool fc")
    assert " ".join(deep.blocks[0].genes) == "conv norm relu conv norm add relu"
    assert len(deep.blocks[0].starts) == 5
    other = made("fc " + "conv norm relu conv norm add relu " * 2)
    assert other.blocks[0].signature == deep.blocks[0].signature


@given(GENES)
def test_grams_are_counted_as_by_hand(genes: tuple[str, ...]) -> None:
    for length, counts in enumerate(Genome("g", genes).grams, start=1):
        naive: Counter[tuple[str, ...]] = Counter()
        for run in product(set(genes), repeat=length):
            places = range(len(genes) - length + 1)
            naive[run] = sum(genes[i : i + length] == run for i in places)
        assert counts == +naive


@given(GENES)
def test_blocks_recur_and_do_not_overlap(genes: tuple[str, ...]) -> None:
    used: set[int] = set()
    blocks = Genome("g", genes).blocks
    for block in blocks:
        assert len(block.starts) >= 2
        assert len(block.genes) >= 2
        for place in block.starts:
            assert genes[place : place + len(block.genes)] == block.genes
            covered = set(range(place, place + len(block.genes)))
            assert not covered & used
            used |= covered
    if blocks:
        assert blocks[0].covered == _most_covered(genes)
    else:
        assert _most_covered(genes) == 0


def _most_covered(genes: tuple[str, ...]) -> int:
    """What the best repeat of two genes or more explains, all of them tried."""
    best = 0
    for start in range(len(genes)):
        for length in range(2, len(genes) - start + 1):
            run, count, at = genes[start : start + length], 0, 0
            while at + length <= len(genes):
                is_there = genes[at : at + length] == run
                count += is_there
                at += length if is_there else 1
            if count > 1:
                best = max(best, count * length)
    return best


@given(GENES, GENES)
def test_similarity_is_the_mean_cosine_of_the_counts(
    first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    a, b = Genome("a", first), Genome("b", second)
    found = []
    for x, y in zip(a.grams, b.grams, strict=True):
        if x or y:
            keys = [*{*x, *y}]
            dot = sum(x[k] * y[k] for k in keys)
            size = sqrt(sum(x[k] ** 2 for k in keys)) * sqrt(sum(y[k] ** 2 for k in keys))
            found.append(dot / size if size else 0.0)
    expected = sum(found) / len(found) if found else 1.0
    assert isclose(similarity(a, b), expected, abs_tol=1e-9)
    assert similarity(a, b) == similarity(b, a)
    assert similarity(a, a) == 1.0


@pytest.mark.full
def test_long_programs_are_taken_in_time() -> None:
    same = Genome("same", ("relu",) * 65_000)
    assert same.blocks[0].covered >= 60_000
    mixed = Genome("mixed", tuple(f"op{i * i % 251}" for i in range(65_000)))
    assert mixed.blocks


# The tree


def test_the_tree_joins_what_is_alike_first() -> None:
    between = np.array(
        [[0, 0.2, 0.6, 1.0], [0.2, 0, 0.8, 1.0], [0.6, 0.8, 0, 1.0], [1.0] * 3 + [0]]
    )
    root = tree(["a", "b", "c", "d"], between)
    assert newick(root) == "((('a':0.1,'b':0.1):0.25,'c':0.35):0.15,'d':0.5);\n"
    assert root.leaves == ("a", "b", "c", "d")


@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_heights_are_mean_distances_of_leaves(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    points = random.random((count, 3))
    between = np.linalg.norm(points[:, None] - points[None], axis=2)
    root = tree([str(i) for i in range(count)], between)

    def check(node: Node) -> None:
        if node.children:
            left, right = ([int(n) for n in child.leaves] for child in node.children)
            mean = sum(between[i, j] for i in left for j in right) / (len(left) * len(right))
            assert isclose(node.height, mean / 2, rel_tol=1e-9)
            for child in node.children:
                assert child.height <= node.height + 1e-12
                check(child)

    check(root)
    assert sorted(map(int, root.leaves)) == list(range(count))


def test_names_are_safe_in_newick_and_svg() -> None:
    names = ["it's (a), b:c;", '<script>&"', "\x1b[31m"]
    root = tree(names, np.full((3, 3), 0.5))
    text = newick(root)
    assert "'it''s (a), b:c;'" in text
    assert "\x1b" not in text
    drawn = ET.fromstring(picture(root))
    shown = [e.text for e in drawn.iter() if e.tag.endswith("text")]
    assert names[0] in shown
    assert names[1] in shown
    assert "?[31m" in shown


def test_a_picture_has_every_leaf_and_branch() -> None:
    genomes = [made("a b c", "one"), made("a b c", "two"), made("x y", "three")]
    root = tree([g.name for g in genomes], distances(genomes))
    drawn = picture(root)
    for name in root.leaves:
        assert f">{name}</text>" in drawn
    tree_lines = re.findall(r"<path d", drawn)
    # Stubs of three leaves and the root; of two forks a line down and those to their children, one
    # of which has no length: two programs are the same.
    assert len(tree_lines) == 4 + (1 + 2) + 1
    assert re.findall(r'class="axis" x="[^"]*" y="[^"]*">([^<]*)<', drawn) == [
        "0", "0.2", "0.4", "0.6", "0.8", "1", "distance",
    ]  # fmt: skip


@pytest.mark.parametrize("names", [["one"], ["one", "two"]])
def test_small_trees(names: list[str]) -> None:
    root = tree(names, np.zeros((len(names), len(names))))
    assert root.leaves == tuple(names)
    assert ET.fromstring(picture(root)).tag.endswith("svg")
    assert newick(root).endswith(";\n")
