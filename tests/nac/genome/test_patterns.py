from __future__ import annotations

from collections.abc import Callable

import pytest

from nacre.nac.genome.graph import GraphNode, ProgramGraph, graph_of
from nacre.nac.genome.library import LIBRARY
from nacre.nac.genome.matching import named_ends, outermost, pattern_counts, recognise
from nacre.nac.genome.terms import parse_term
from nacre.nac.tools.opening import open_nac
from tests.nac.files import FOLDER
from tests.nac.genome.networks import Network, graph_from

IMAGE, SEQUENCE = (1, 8, 8, 8), (1, 4, 8)


def inverted(n: Network, x: int) -> int:
    wide = n.relu(n.conv(x, 16, 1))
    return n.conv(n.relu(n.depthwise(wide)), 8, 1)


def mbconv(n: Network, x: int) -> int:
    wide = n.relu(n.conv(x, 16, 1))
    return n.conv(n.squeeze_excite(n.relu(n.depthwise(wide))), 8, 1)


def swish(n: Network, x: int) -> int:
    y = n.conv(x, 8)
    return n.mul(y, n.sigmoid(y))


def bottleneck(n: Network, x: int) -> int:
    y = n.conv(n.relu(n.conv(n.relu(n.conv(x, 4, 1)), 4)), 8, 1)
    return n.relu(n.add(y, x))


def basic_with_projection(n: Network, x: int) -> int:
    y = n.conv(n.relu(n.conv(x, 16)), 16)
    return n.relu(n.add(n.conv(x, 16, 1), y))


def fire(n: Network, x: int) -> int:
    s = n.relu(n.conv(x, 4, 1))
    sides = n.relu(n.conv(s, 8, 1)), n.relu(n.conv(s, 8))
    return n.builder.add("Concat", *sides, axis=1)


def dense(n: Network, x: int) -> int:
    return n.builder.add("Concat", x, n.relu(n.conv(x, 4)), axis=1)


def gated(n: Network, x: int) -> int:
    return n.linear(n.mul(n.relu(n.linear(x, 16)), n.linear(x, 16)), 8)


def before_norm(n: Network, x: int) -> int:
    y = n.add(x, n.attention(n.norm(x)))
    return n.add(y, n.linear(n.relu(n.linear(n.norm(y), 16)), 8))


def after_norm(n: Network, x: int) -> int:
    y = n.norm(n.add(n.attention(x), x))
    return n.norm(n.add(n.linear(n.relu(n.linear(y, 16)), 8), y))


def classifier(n: Network, x: int) -> int:
    flat = n.builder.add("Reshape", n.mean(n.relu(x)), new_shape=[1, 8])
    return n.linear(flat, 10)


@pytest.mark.parametrize(
    ("write", "shape", "expected"),
    [
        (lambda n, x: n.relu(n.conv(x, 8)), IMAGE, {"ConvBlock"}),
        (swish, IMAGE, {"ConvBlock", "Swish"}),
        (lambda n, x: n.conv(n.depthwise(x), 16, 1), IMAGE, {"DepthwiseSeparable"}),
        (lambda n, x: n.squeeze_excite(n.relu(x)), IMAGE, {"SqueezeExcite", "ConvBlock"}),
        (inverted, IMAGE, {"InvertedResidual", "ConvBlock", "DepthwiseSeparable"}),
        (lambda n, x: n.add(inverted(n, x), x), IMAGE,
         {"InvertedResidual", "ConvBlock", "DepthwiseSeparable", "Residual"}),
        (mbconv, IMAGE, {"MBConv", "ConvBlock", "SqueezeExcite"}),
        (bottleneck, IMAGE, {"Bottleneck", "ConvBlock", "Residual"}),
        (basic_with_projection, IMAGE, {"BasicBlock", "ConvBlock", "Residual"}),
        (fire, IMAGE, {"Fire", "ConvBlock"}),
        (dense, IMAGE, {"DenseLayer", "ConvBlock"}),
        (lambda n, x: n.conv(x, 8, 4, stride=4), IMAGE, {"PatchEmbed"}),
        (classifier, IMAGE, {"Classifier"}),
        (gated, SEQUENCE, {"GatedMLP"}),
        (before_norm, SEQUENCE,
         {"TransformerLayer", "SelfAttention", "Attention", "MLP", "Residual"}),
        (after_norm, SEQUENCE,
         {"TransformerLayer", "SelfAttention", "Attention", "MLP", "Residual"}),
    ],
)  # fmt: skip
def test_blocks_of_networks_have_their_names(
    write: Callable[[Network, int], int], shape: tuple[int, ...], expected: set[str]
) -> None:
    graph = graph_from(write, shape)
    assert set(pattern_counts(recognise(graph))) == expected


def test_a_value_and_its_own_mean_are_no_residual() -> None:
    graph = graph_from(lambda n, x: n.add(n.relu(x), n.mean(n.relu(x))))
    assert recognise(graph) == ()


def test_the_largest_name_stands_where_it_ends_and_covers_what_is_in_it() -> None:
    graph = graph_from(lambda n, x: n.add(mbconv(n, x), x))
    found = recognise(graph)
    assert [one.pattern for one in outermost(found)] == ["MBConv"]
    last = graph.nodes[-1].index
    assert named_ends(found)[last].pattern == "MBConv"
    assert named_ends(found)[last].inputs == (graph.nodes[0].index,)
    assert pattern_counts(found)["MBConv"] == 1  # the one without its sum is inside


def test_files_of_the_reference_compiler_are_recognised() -> None:
    graph = graph_of(open_nac(FOLDER / "cnn.none.v16.shim.nac"))
    assert pattern_counts(recognise(graph)) == {"ConvBlock": 2, "Classifier": 1}


def test_long_programs_take_time_by_their_length() -> None:
    # Sums of all that came before: a body is given up when it is too large.
    nodes = [GraphNode(0, ("input",))]
    nodes += [GraphNode(i, ("add",), (i - 1, max(0, i - 2))) for i in range(1, 3000)]
    assert recognise(ProgramGraph("sums", tuple(nodes))) == ()
    moved = [GraphNode(0, ("input",)), *(GraphNode(i, ("move",), (i - 1,)) for i in range(1, 9000))]
    assert recognise(ProgramGraph("moves", (*moved, GraphNode(9000, ("act",), (8999,))))) == ()


def test_patterns_are_written_as_terms() -> None:
    term = parse_term("add(y:add(x, body(x)), norm?(y))")
    assert term.variables() == ("x",)
    assert term.arguments[1].is_optional
    for wrong in ("add(x", "add(x,)", "(x)", "add(x) y", "add(x; y)"):
        with pytest.raises(ValueError, match=r"."):
            parse_term(wrong)


def test_names_are_those_of_the_library() -> None:
    names = [pattern.name for pattern in LIBRARY]
    assert len(set(names)) == len(names)
    assert {"ConvBlock", "Residual", "InvertedResidual", "MBConv", "TransformerLayer", "Attention",
            "GatedMLP", "SqueezeExcite", "Bottleneck", "PatchEmbed"} <= set(names)  # fmt: skip
