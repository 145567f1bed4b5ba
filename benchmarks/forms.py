"""Programs as text and as bytecode: sizes, and how long it takes from a file to its tree.

Every node and every span is visited inside the timed part: a frozen node's hash takes in all of its
fields, and those of the nodes that it holds. Times are processor time, the best of some runs, text
and bytecode in turn, so that a busy machine slows both.

    python benchmarks/forms.py                  plans that are compiled here, and a long one
    python benchmarks/forms.py plan.nem ...     these files
    python benchmarks/forms.py --resnet         ResNet-50 on npm4k and npm64k, which takes a minute
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import nacre
from nacre import nem
from nacre.base.source import Source
from nacre.nem.bytecode.library import bytecode_source
from nacre.nem.bytecode.tree_writer import tree_columns
from nacre.nem.model.files import default_roots, load
from nacre.nem.model.linking import link
from nacre.nem.syntax.formatter import format_source
from nacre.nem.syntax.parser import parse

RUNS = 7
SIZE, SPEED = 4.0, 5.0  # times smaller and faster than text, at least


@dataclass(frozen=True)
class Row:
    """A program in both forms. Seconds are those of the whole file."""

    name: str
    text_bytes: int
    packed_bytes: int
    nodes: int
    text_tree: float
    packed_tree: float
    text_linked: float
    packed_linked: float


def _convolutions(layers: int) -> str:
    """The plan of a chain of convolutions with shortcuts, as in a ResNet."""
    import numpy as np

    from nacre.core.builder import Builder

    draw = np.random.default_rng(26)
    build = Builder("nacre-1")
    x = build.input("x", "f32", (1, 56, 56, 64))
    for _ in range(layers):
        weights = build.constant(draw.normal(size=(3, 3, 64, 64)).astype(np.float32) / 24)
        made = build.add("Conv2d", x, weights, strides=(1, 1), padding="Same")
        x = build.add("Relu", build.add("BinOp", made, x, op="Add"))
    return nacre.compile(build.module(x), "npm4k").program


def _flat(tasks: int) -> str:
    """A program without loops: a task after the other, each with its dependence."""
    lines = ["program flat:", "buffer X : DDR (size=65536)", "buffer Y : L2 (size=65536)"]
    for index in range(tasks):
        at = index % 512 * 128
        deps = f", deps=[t{index - 1}]" if index else ""
        lines.append(
            f"t{index} = transfer.async(dst=region(Y, {at}, 128), src=region(X, {at}, 128){deps})"
        )
    return "\n".join(lines) + "\n"


def _resnet() -> Iterator[tuple[str, str]]:
    from benchmarks.networks.made import resnet as made_resnet

    model, _ = made_resnet()
    for device in ("npm4k", "npm64k"):
        yield f"resnet-50 on {device}", nacre.compile(model, device).program


def _best(work: Callable[[], object]) -> float:
    gc.collect()
    begun = process_time()
    kept = work()
    taken = process_time() - begun
    del kept  # taking a tree down is not part of making it
    return taken


def measure(name: str, text: str) -> Row:
    """Both forms of a program, in turn."""
    text = format_source(Source(name, text))
    data = nem.pack(text)

    def visit_text() -> object:
        parsed = parse(Source(name, text))
        return parsed, hash(parsed.document)

    def visit_packed() -> object:
        parsed = bytecode_source(data, name).parsed
        return parsed, hash(parsed.document)

    def link_text() -> object:
        return link(load(parse(Source(name, text)), default_roots(None)))

    def link_packed() -> object:
        return link(load(bytecode_source(data, name).parsed, default_roots(None)))

    works = (visit_text, visit_packed, link_text, link_packed)
    times = [min(column) for column in zip(*([_best(w) for w in works] for _ in range(RUNS)))]  # noqa: B905
    nodes = sum(1 for _ in tree_columns(parse(Source(name, text)).document).nodes)
    return Row(name, len(text.encode()), len(data), nodes, *times)


def _line(row: Row) -> str:
    size, speed = row.text_bytes / row.packed_bytes, row.text_tree / row.packed_tree
    verdict = "ok" if size >= SIZE and speed >= SPEED else "below"
    return (
        f"{row.name:22} {row.text_bytes:11,} {row.packed_bytes:9,} {size:6.1f}x {row.nodes:9,} "
        f"{row.text_tree / row.nodes * 1e6:7.2f} {row.packed_tree / row.nodes * 1e6:7.2f} "
        f"{speed:6.1f}x {row.text_linked / row.packed_linked:6.1f}x  {verdict}"
    )


def main() -> None:
    """Print a row a program."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("files", nargs="*", type=Path)
    reader.add_argument("--resnet", action="store_true")
    options = reader.parse_args()
    head = f"{'program':22} {'text':>11} {'bytecode':>9} {'':>7} {'nodes':>9}"
    print(f"{head} {'us/node':>7} {'us/node':>7} {'tree':>7} {'linked':>7}")
    if options.resnet:
        for name, text in _resnet():
            print(_line(measure(name, text)))
    elif options.files:
        for path in options.files:
            print(_line(measure(path.stem, path.read_text(encoding="utf-8"))))
    else:
        print(_line(measure("convolutions", _convolutions(16))))
        print(_line(measure("flat, 20,000 tasks", _flat(20_000))))


if __name__ == "__main__":
    main()
