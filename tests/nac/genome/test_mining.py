from __future__ import annotations

from collections import defaultdict
from itertools import combinations, permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.nac.genome.canonical import SmallGraph, canonical_code, code_text
from nacre.nac.genome.graph import GraphNode, ProgramGraph
from nacre.nac.genome.mining import disjoint_places, mine, select_genes

LABELS = st.sampled_from(["conv", "act", "add"])


@st.composite
def small_graphs(draw: st.DrawFn, most: int = 6) -> SmallGraph:
    """Edges from earlier to later nodes; several between two nodes are operands of their own."""
    labels = draw(st.lists(LABELS, min_size=1, max_size=most))
    pairs = list(combinations(range(len(labels)), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=8, unique=True)) if pairs else []
    edges = [(a, b, draw(st.sampled_from(["", "0", "1"]))) for a, b in chosen]
    return SmallGraph(tuple(labels), tuple(sorted(edges)))


def relabelled(graph: SmallGraph, order: list[int]) -> SmallGraph:
    labels = tuple(graph.labels[order.index(at)] for at in range(len(order)))
    return SmallGraph(labels, tuple((order[a], order[b], op) for a, b, op in graph.edges))


def naive_form(graph: SmallGraph) -> object:
    """The least of all ways to write a graph."""
    return min(
        (lambda g: (g.labels, tuple(sorted(g.edges))))(relabelled(graph, list(order)))
        for order in permutations(range(len(graph.labels)))
    )


@given(small_graphs(), st.data())
def test_a_graph_has_its_code_in_whatever_order_its_nodes_are(
    graph: SmallGraph, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(graph.labels))))
    assert canonical_code(relabelled(graph, order)) == canonical_code(graph)


@settings(max_examples=30)
@given(small_graphs(5), small_graphs(5))
def test_codes_are_equal_exactly_when_graphs_are_the_same(a: SmallGraph, b: SmallGraph) -> None:
    assert (canonical_code(a) == canonical_code(b)) == (naive_form(a) == naive_form(b))


def test_a_star_with_many_equal_leaves_has_a_code_at_once() -> None:
    leaves = 40
    star = SmallGraph(("a",) * (leaves + 1), tuple((0, i, "") for i in range(1, leaves + 1)))
    labels, edges = canonical_code(star)
    assert len(labels) == leaves + 1
    assert len(edges) == leaves


@st.composite
def programs(draw: st.DrawFn, name: str) -> ProgramGraph:
    nodes = [GraphNode(0, ("input",))]
    for index in range(1, draw(st.integers(1, 7)) + 1):
        label = draw(st.sampled_from(["conv", "act", "add", "matmul", "move"]))
        count = 2 if label in ("add", "matmul") else 1
        operands = tuple(draw(st.integers(0, index - 1)) for _ in range(count))
        nodes.append(GraphNode(index, (label,), operands))
    return ProgramGraph(name, tuple(nodes))


def naive_parts(graph: ProgramGraph, most: int) -> dict[object, set[frozenset[int]]]:
    """Every connected set of nodes, by the least way to write it."""
    origins = graph.origins
    kept = [node for node in graph.nodes if not node.is_move]
    made: dict[object, set[frozenset[int]]] = defaultdict(set)
    for size in range(2, most + 1):
        for chosen in combinations(kept, size):
            number = {node.index: at for at, node in enumerate(chosen)}
            edges = []
            for node in chosen:
                is_free = node.label in ("add", "conv", "act")
                for at, operand in enumerate(node.operands):
                    if origins[operand] in number:
                        op = "" if is_free else str(at)
                        edges.append((number[origins[operand]], number[node.index], op))
            if is_connected(size, edges):
                form = naive_form(SmallGraph(tuple(n.label for n in chosen), tuple(sorted(edges))))
                made[form].add(frozenset(number))
    return made


def is_connected(size: int, edges: list[tuple[int, int, str]]) -> bool:
    reached = {0}
    for _ in range(size):
        reached |= {b for a, b, _ in edges if a in reached} | {
            a for a, b, _ in edges if b in reached
        }
    return len(reached) == size


@settings(max_examples=25)
@given(programs("a"), programs("b"))
def test_what_is_mined_is_what_a_naive_search_finds(a: ProgramGraph, b: ProgramGraph) -> None:
    sides = {"a": naive_parts(a, 4), "b": naive_parts(b, 4)}
    common = sides["a"].keys() & sides["b"].keys()
    found = mine([b, a], least_support=2, most_nodes=4)
    for one in found:
        form = naive_form(SmallGraph(*one.code))
        assert form in common
        assert {name: set(places) for name, places in one.places} == {
            name: side[form] for name, side in sides.items()
        }
    # What is left out lies everywhere in one that is larger.
    shown = {naive_form(SmallGraph(*one.code)) for one in found}
    for form in common - shown:
        assert any(
            all(
                any(place < larger for larger in side[other])
                for side in sides.values() for place in side[form]
            )
            for other in common
        )  # fmt: skip


def test_the_genes_of_a_corpus_explain_it_together() -> None:
    def chain(name: str, repeats: int) -> ProgramGraph:
        nodes = [GraphNode(0, ("input",))]
        for _ in range(repeats):
            at = len(nodes)
            nodes.append(GraphNode(at, ("conv",), (at - 1,)))
            nodes.append(GraphNode(at + 1, ("act",), (at,)))
            nodes.append(GraphNode(at + 2, ("add",), (at - 1, at + 1)))
        return ProgramGraph(name, tuple(nodes))

    corpus = [chain("short", 2), chain("long", 5)]
    genes = select_genes(mine(corpus, most_nodes=3), 5)
    assert genes == select_genes(mine(corpus[::-1], most_nodes=3), 5)
    best, count = genes[0]
    assert code_text(best.code) == "act > add, conv > act"
    assert (best.support, count) == (2, 7)
    taken = [p for gene, _ in genes[:1] for _, places in gene.places for p in places]
    assert len(disjoint_places(taken)) <= len(taken)


def test_a_corpus_of_hubs_ends() -> None:
    nodes = [GraphNode(0, ("input",)), *(GraphNode(i, ("act",), (0,)) for i in range(1, 2000))]
    nodes.append(GraphNode(2000, ("concat",), tuple(range(1, 2000))))
    assert mine([ProgramGraph("hub", tuple(nodes))], least_support=1) is not None
