"""A tree of programs as a picture: SVG, the root at the left, a ruler of distance below."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from math import floor, log10
from unicodedata import east_asian_width

from nacre.nac.tools.phylogeny import Node

_ROW, _MARGIN, _TREE, _STUB, _FOOT = 22, 16, 420, 8, 52
_LETTER, _WIDE_LETTER = 7.0, 12.5
_TICKS = 6  # at most so many parts of the ruler
_STYLE = (
    "rect{fill:#fff}path{fill:none;stroke:#456;stroke-width:1.5;stroke-linecap:square}"
    "path.axis{stroke:#9ab;stroke-width:1}text{font:12px sans-serif;fill:#222}"
    "text.axis{font-size:10px;fill:#567;text-anchor:middle}"
)


@dataclass
class _Layout:
    """Rows are given to leaves from top to bottom as they are met."""

    scale: float
    height: float  # of the root
    row: int = 0
    parts: list[str] = field(default_factory=list)

    def x(self, height: float) -> float:
        return _MARGIN + _STUB + (self.height - height) * self.scale

    def draw(self, node: Node) -> float:
        """The vertical place of a node, drawn with all below it."""
        if not node.children:
            y = _MARGIN + self.row * _ROW + _ROW / 2
            self.row += 1
            # Programs that do not differ meet where they end: a stub tells them apart.
            self._line(self.x(0), y, self.x(0) + _STUB)
            x = self.x(0) + _STUB + 6
            self.parts.append(f'<text x="{x:.1f}" y="{y + 4:.1f}">{escape(_label(node))}</text>')
            return y
        places = [self.draw(child) for child in node.children]
        x = self.x(node.height)
        self.parts.append(f'<path d="M{x:.1f} {places[0]:.1f}V{places[-1]:.1f}"/>')
        for child, y in zip(node.children, places, strict=True):
            if child.height < node.height:
                self._line(x, y, self.x(child.height))
        return (places[0] + places[-1]) / 2

    def draw_root(self, root: Node) -> None:
        """The whole tree, with a stub where it comes from."""
        self._line(_MARGIN, self.draw(root), self.x(root.height))

    def _line(self, x: float, y: float, end: float) -> None:
        self.parts.append(f'<path d="M{x:.1f} {y:.1f}H{end:.1f}"/>')


def _label(node: Node) -> str:
    return "".join(c if c.isprintable() else "?" for c in node.name)


def _width(name: str) -> float:
    """About how wide a name is; letters of East Asia are as wide as high."""
    return sum(_WIDE_LETTER if east_asian_width(c) in "WF" else _LETTER for c in name)


def picture(root: Node) -> str:
    """The tree as SVG."""
    names = root.leaves
    drawing = _Layout(_TREE / root.height if root.height else 0.0, root.height)
    drawing.draw_root(root)
    bottom = _MARGIN + len(names) * _ROW
    width = round(drawing.x(0) + _STUB + 6 + _MARGIN + max(map(_width, names)))
    height = bottom + (_FOOT if root.height else _MARGIN)
    body = [*drawing.parts, *_ruler(drawing, bottom)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img">\n'
        f"<title>Programs by likeness</title>\n<style>{_STYLE}</style>\n"
        '<rect width="100%" height="100%"/>\n' + "".join(f"{line}\n" for line in body) + "</svg>\n"
    )


def _ruler(drawing: _Layout, bottom: float) -> Iterator[str]:
    """The distance of programs that meet at a place, from none at the right."""
    if not drawing.height:
        return
    left, right = drawing.x(drawing.height), drawing.x(0)
    yield f'<path class="axis" d="M{left:.1f} {bottom + 8}H{right:.1f}"/>'
    step = _round_step(2 * drawing.height)
    for tick in range(floor(2 * drawing.height / step) + 1):
        x = drawing.x(tick * step / 2)
        yield f'<path class="axis" d="M{x:.1f} {bottom + 5}V{bottom + 11}"/>'
        yield f'<text class="axis" x="{x:.1f}" y="{bottom + 23}">{tick * step:.3g}</text>'
    middle = (left + right) / 2
    yield f'<text class="axis" x="{middle:.1f}" y="{bottom + 39}">distance</text>'


def _round_step(distance: float) -> float:
    """The least of 1, 2, 5, 10, .. that cuts a distance into a few parts."""
    power: float = 10.0 ** floor(log10(distance / _TICKS))
    return next(power * m for m in (1, 2, 5, 10, 20) if distance / (power * m) <= _TICKS)
