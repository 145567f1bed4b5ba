"""A tree of programs as a picture: SVG, the root at the left, a ruler of distance below."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from nacre.nac.tools.phylogeny import Node

_ROW, _MARGIN, _TREE, _LETTER = 22, 16, 420, 7.4
_STYLE = (
    "path{fill:none;stroke:#456;stroke-width:1.5}text{font:12px sans-serif;fill:#222}"
    "text.axis{font-size:10px;fill:#678;text-anchor:middle}"
)


@dataclass
class _Drawing:
    """Rows are given to leaves from top to bottom as they are met."""

    scale: float
    height: float  # of the root
    row: int = 0
    parts: list[str] = field(default_factory=list)

    def x(self, height: float) -> float:
        return _MARGIN + (self.height - height) * self.scale

    def draw(self, node: Node) -> float:
        """The vertical place of a node, drawn with all below it."""
        if not node.children:
            y = _MARGIN + self.row * _ROW + _ROW / 2
            self.row += 1
            name = escape("".join(c if c.isprintable() else "?" for c in node.name))
            self.parts.append(f'<text x="{self.x(0) + 6:.1f}" y="{y + 4:.1f}">{name}</text>')
            return y
        places = [self.draw(child) for child in node.children]
        x = self.x(node.height)
        self.parts.append(f'<path d="M{x:.1f} {places[0]:.1f}V{places[-1]:.1f}"/>')
        for child, y in zip(node.children, places, strict=True):
            self.parts.append(f'<path d="M{x:.1f} {y:.1f}H{self.x(child.height):.1f}"/>')
        return (places[0] + places[-1]) / 2


def picture(root: Node) -> str:
    """The tree as SVG."""
    names = root.leaves
    drawing = _Drawing(_TREE / root.height if root.height else 0.0, root.height)
    drawing.draw(root)
    bottom = _MARGIN + len(names) * _ROW
    width = drawing.x(0) + _MARGIN + max(map(len, names)) * _LETTER
    body = [*drawing.parts, *_ruler(drawing, bottom)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{bottom + 40}">\n'
        f"<title>Programs by likeness</title>\n<style>{_STYLE}</style>\n"
        + "".join(f"{line}\n" for line in body)
        + "</svg>\n"
    )


def _ruler(drawing: _Drawing, bottom: float) -> Iterator[str]:
    """The distance of programs that meet at a place, from none at the right."""
    if not drawing.height:
        return
    left, right = drawing.x(drawing.height), drawing.x(0)
    yield f'<path d="M{left:.1f} {bottom + 8}H{right:.1f}"/>'
    for share in (0.0, 0.5, 1.0):
        height = drawing.height * share
        x = drawing.x(height)
        yield f'<path d="M{x:.1f} {bottom + 5}V{bottom + 11}"/>'
        yield f'<text class="axis" x="{x:.1f}" y="{bottom + 24}">{2 * height:.3g}</text>'
