"""Tiles as blocks: their widths and settings, read from weights, types and operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import structs

from nacre.nac.genome.graph import strides_of, weight_shape
from nacre.nac.synthesis.blocks import BLOCKS, CLASSIFIER, JOINTS, Settings
from nacre.nac.synthesis.derivation import Stage
from nacre.nac.synthesis.tiles import LINEAR, MEAN, OPEN, Specimen, Tile
from nacre.nac.tools.genome import gene

RATIOS = (0.125, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
_MOST_KERNEL, _MOST_STRIDE, _MOST_HEADS, _MOST_REPEAT = 31, 16, 64, 64

_ACTS = {
    "relu6": "relu6", "hardtanh": "relu6", "clamp": "relu6", "core.Clip": "relu6",
    "gelu": "gelu", "core.Gelu": "gelu", "silu": "silu", "core.Silu": "silu",
    "hardswish": "hardswish", "core.HardSwish": "hardswish", "tanh": "tanh", "core.Tanh": "tanh",
    "sigmoid": "sigmoid", "core.Sigmoid": "sigmoid", "mish": "silu", "elu": "silu",
}  # fmt: skip
_NORMS = (("batch", "batch"), ("group", "group"), ("instance", "group"), ("rms", "rms"))
_OF_INPUT = ("InvertedResidual", "MBConv")  # blocks whose ratio is to the width that they take


@dataclass(frozen=True)
class Link:
    """A stage with how its width follows from that before it; `stage` is None for an open step."""

    stage: Stage | None
    growth: float = 1.0


@dataclass(frozen=True)
class Chain:
    """The blocks of a program in their order, and how many classes it tells apart."""

    links: tuple[Link, ...]
    classes: int
    is_closed: bool  # whether it ends in a classifier


def read_chain(one: Specimen) -> Chain:
    """The blocks of a program; equal ones in a row are one stage."""
    links: list[Link] = []
    is_closed = False
    for tile in one.tiles:
        if tile.block in (MEAN, CLASSIFIER) or (tile.block == LINEAR and tile is one.tiles[-1]):
            is_closed = True
            break
        links += _links(one, tile)
    shape = one.shape(one.cuts[-1]) if one.cuts else ()
    return Chain(tuple(_merged(links)), shape[-1] if len(shape) == 2 else 0, is_closed)


def _links(one: Specimen, tile: Tile) -> Iterator[Link]:
    """A tile as a stage, and before it what makes its input of the cut before it."""
    before, taken = one.shape(one.cuts[tile.start]), _input_shape(one, tile)
    if tile.block in (OPEN, LINEAR) or not before or not taken:
        yield Link(None)
        return
    joints = JOINTS.get(len(before)), JOINTS.get(len(taken))
    if joints[0] != joints[1]:
        adapter = "Tokens" if joints == ("image", "sequence") else "Flatten"
        yield Link(Stage(adapter, taken[-1]) if joints[1] in ("sequence", "vector") else None)
    if joints[1] not in BLOCKS[tile.block].takes:
        yield Link(None)
        return
    yield _link(one, tile, _width(taken))


def _link(one: Specimen, tile: Tile, width: int) -> Link:
    # A norm may have its channels last.
    shape = one.shape(tile.nodes[0] if tile.block == "Conv" else one.cuts[tile.end])
    out = _width(shape) if len(shape) > 1 else width
    if tile.block == "DenseLayer":
        out -= width
    kind = BLOCKS[tile.block]
    settings = kind.relevant(_settings(one, tile, width, max(1, out)))
    growth = nearest_ratio(out / width) if kind.sets_width else 1.0
    return Link(Stage(tile.block, max(1, out), 1, settings), growth)


def _width(shape: Sequence[int]) -> int:
    return shape[1] if len(shape) == 4 else shape[-1]


def nearest_ratio(ratio: float) -> float:
    """The ratio of the table that is nearest by factor."""
    return min(RATIOS, key=lambda known: max(known / ratio, ratio / known) if ratio > 0 else known)


def _input_shape(one: Specimen, tile: Tile) -> tuple[int, ...]:
    """The shape of what a tile is given, behind the moves before it."""
    graph = one.program.graph
    start = one.cuts[tile.start]
    for index in tile.nodes:
        node = graph.by_index[index]
        for operand in () if node.is_move else node.operands:
            if graph.origins[operand] == start:
                return one.shape(operand)
    return ()


def _settings(one: Specimen, tile: Tile, width: int, out: int) -> Settings:
    convolutions = [i for i in tile.nodes if "conv" in one.node(i).words]
    pools = [i for i in tile.nodes if "pool" in one.node(i).words]
    base = width if tile.block in _OF_INPUT else out
    made = Settings(
        act=_act(one, tile),
        norm=_norm(one, tile),
        ratio=_ratio(one, tile, base),
        squeeze=_squeeze(one, tile),
        heads=_heads(one, tile),
        is_gated=any(
            o.pattern == "GatedMLP" and o.nodes <= set(tile.nodes) for o in one.program.occurrences
        ),
        pool="mean" if any("avg" in _gene(one, i).lower() for i in pools) else "max",
    )
    if pools:
        return structs.replace(made, **_pool_window(one, pools[0]))
    if convolutions:
        windows = [_window(one, index) for index in convolutions]
        kernel, stride = (max(sizes) for sizes in zip(*windows, strict=True))
        kernel, stride = min(kernel, _MOST_KERNEL), min(stride, _MOST_STRIDE)
        return structs.replace(made, kernel=kernel, stride=stride)
    return made


def _window(one: Specimen, index: int) -> tuple[int, int]:
    instruction = one.opened.file.instructions[index]
    weight = weight_shape(one.opened, index, instruction)
    return max(weight[2:], default=1), max(strides_of(one.opened, instruction, 2))


def _pool_window(one: Specimen, index: int) -> dict[str, int]:
    """How much a pooling makes an image smaller is its stride; its window is at least that."""
    before, after = one.shape(one.node(index).operands[0]), one.shape(index)
    constants = one.opened.file.constant_of
    lists = [
        value
        for id_ in one.opened.file.instructions[index].c[1:]
        if isinstance(value := constants[id_].value if id_ in constants else None, tuple)
    ]
    kernel = int(max(lists[0])) if lists and lists[0] else 2
    is_known = len(before) == 4 and len(after) == 4
    stride = max(1, round(before[2] / after[2])) if is_known else kernel
    return {"kernel": min(kernel, _MOST_KERNEL), "stride": min(stride, _MOST_STRIDE)}


def _gene(one: Specimen, index: int) -> str:
    op = one.opened.file.instructions[index].op
    return gene(one.opened.file.name_of.get(op, ""))


def _act(one: Specimen, tile: Tile) -> str:
    written = {o.root: o.pattern for o in one.program.occurrences if o.role == "act"}
    for index in tile.nodes:
        if index in written:
            return "gelu" if written[index] == "ErfGelu" else "silu"
        node = one.node(index)
        if node.words[0] == "act" or (node.words[-1] == "act" and node.words[0] == "tanh"):
            return _ACTS.get(_gene(one, index).rstrip("_"), "relu")
    return "relu"


def _norm(one: Specimen, tile: Tile) -> str:
    written = {o.root for o in one.program.occurrences if o.role == "norm"}
    for index in tile.nodes:
        if index in written:
            return "rms"
        if one.node(index).words[0] == "norm":
            name = _gene(one, index).lower()
            return next((norm for word, norm in _NORMS if word in name), "layer")
    return "none"


def _ratio(one: Specimen, tile: Tile, base: int) -> float:
    """The width of the layer before the last activation that stands between two layers."""
    graph = one.program.graph
    inside = set(tile.nodes)
    acts = [i for i in tile.nodes if "act" in one.node(i).words and one.node(i).words[0] != "gate"]
    for index in acts if tile.block not in ("TransformerLayer",) else acts[::-1]:
        at = graph.origins[one.node(index).operands[0]]
        while at in inside and "project" not in one.node(at).words and one.node(at).operands:
            at = graph.origins[one.node(at).operands[0]]
        shape = one.shape(at)
        if at in inside and "project" in one.node(at).words and len(shape) > 1:
            channels = shape[1] if "conv" in one.node(at).words else shape[-1]
            return nearest_ratio(channels / base)
    return 1.0


def _squeeze(one: Specimen, tile: Tile) -> float:
    """Of squeeze and excite: the first layer behind the mean, to what was averaged."""
    graph = one.program.graph
    for index in tile.nodes:
        node = one.node(index)
        if "project" in node.words and node.operands:
            before = one.node(graph.origins[node.operands[0]])
            if before.words[0] == "mean" and len(one.shape(before.operands[0])) == 4:
                return nearest_ratio(one.shape(index)[1] / one.shape(before.operands[0])[1])
    return 0.25


def _heads(one: Specimen, tile: Tile) -> int:
    for index in tile.nodes:
        node = one.node(index)
        if node.words[0] in ("attention", "matmul") and node.operands:
            shape = one.shape(node.operands[0])
            return min(shape[1], _MOST_HEADS) if len(shape) == 4 else 1
    return 1


def _merged(links: Sequence[Link]) -> Iterator[Link]:
    """Blocks that go on as the one before them are one stage with it."""
    last: Link | None = None
    for link in links:
        if last is not None and _goes_on(last, link):
            assert last.stage is not None
            last = Link(structs.replace(last.stage, repeat=last.stage.repeat + 1), last.growth)
            continue
        if last is not None:
            yield last
        last = link
    if last is not None:
        yield last


def _goes_on(held: Link, link: Link) -> bool:
    first, second = held.stage, link.stage
    if first is None or second is None or first.block != second.block:
        return False
    unstrided = structs.replace(first.settings, stride=1)
    is_dense = first.block == "DenseLayer" and first.width == second.width
    is_alike = unstrided == second.settings and (link.growth == 1.0 or is_dense)
    return first.kind.may_repeat and is_alike and first.repeat < _MOST_REPEAT
