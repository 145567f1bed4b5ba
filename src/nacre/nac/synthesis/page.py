"""A search as a page: every network as a point of accuracy and cycles, the front, and its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from nacre.nac.synthesis.axes import (
    apart,
    percent_texts,
    round_logarithmic,
    round_numbers,
    round_step,
)
from nacre.nac.synthesis.pareto import Point
from nacre.nac.synthesis.search import Candidate, SearchResult
from nacre.nac.tools.html_page import escape_text, html_page

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 760, 420, 78, 46, 14, 16
_CURVE_HEIGHT = 200
_MOST_SHARES, _MOST_CYCLES = 10, 12  # numbers at an axis
_LEAST_SHARES = 0.01  # that the axis of accuracy spans
_NAMES = {
    "drawn": "drawn from the grammar",
    "transplant": "stages of one in another",
    "change": "one thing changed",
    "numbers": "numbers tuned",
}
_STYLE = """
svg.chart { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif;
  fill: var(--soft); } svg .axis { stroke: var(--line); stroke-width: 1; }
svg .front { fill: none; stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 5 3; }
svg .curve { fill: none; stroke: rgb(var(--cell)); stroke-width: 2; }
circle { fill-opacity: .75; stroke: var(--paper); stroke-width: .75; }
circle.best { fill-opacity: 1; stroke: var(--ink); stroke-width: 1.5; }
.drawn { fill: #8a97a5; } .change { fill: #1f77b4; } .transplant { fill: #d9622b; }
.numbers { fill: #2a9d5c; } td.stages { white-space: normal; }
"""


@dataclass(frozen=True)
class About:
    """What a page says about a search."""

    data: str
    device: str
    steps: int
    reference: Point
    title: str = "Accuracy against cycles"


@dataclass(frozen=True)
class _Scale:
    """Cycles from left to right by their logarithm, accuracy upwards."""

    low: float
    high: float
    bottom: float  # accuracy
    top: float

    def x(self, cycles: float) -> float:
        share = (log10(max(cycles, 1.0)) - self.low) / (self.high - self.low)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, accuracy: float) -> float:
        share = (accuracy - self.bottom) / (self.top - self.bottom)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)


def search_page(result: SearchResult, about: About) -> str:
    """The page as text."""
    head = (
        f"<h1>{escape_text(about.title)}</h1>\n"
        f"<p>{len(result.found):,} networks, each trained for {about.steps} steps on "
        f"{escape_text(about.data)} and timed on {escape_text(about.device)}; "
        f"{len(result.front)} of them are better than all others in one way or the other.</p>\n"
    )
    parts = [head, *_chart(result, about), *_legend(result), *_curve(result, about)]
    return html_page(escape_text(about.title), "".join([*parts, *_table(result.front)]), _STYLE)


def _scale(found: Sequence[Candidate]) -> _Scale:
    cycles = [one.score.cycles for one in found] or [1, 10]
    low, high = log10(max(1, min(cycles))), log10(max(1, max(cycles)))
    margin = max(0.01, 0.04 * (high - low))
    return _Scale(low - margin, high + margin, *_accuracies([1.0 - o.score.error for o in found]))


def _accuracies(found: Sequence[float]) -> tuple[float, float]:
    """The ends of the axis of accuracy: round, around all that was found, within 0 and 1."""
    least, most = min(found, default=0.0), max(found, default=1.0)
    missing = max(0.0, _LEAST_SHARES - (most - least)) / 2
    step = round_step(most - least + 2 * missing, _MOST_SHARES)
    bottom = floor((least - missing) / step - 0.2) * step
    top = ceil((most + missing) / step + 0.2) * step
    return max(0.0, bottom), min(1.0, top)


def _chart(result: SearchResult, about: About) -> Iterator[str]:
    scale = _scale(result.found)
    yield (
        f'<div class="wide"><svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="img" aria-label="accuracy against cycles">\n'
    )
    yield from _axes(scale, about)
    yield f'<path class="front" d="{_steps(result.front, scale)}"/>\n'
    best = {one.number for one in result.front}
    for one in sorted(result.found, key=lambda o: o.number in best):
        kind = f"{one.origin} best" if one.number in best else one.origin
        radius = 5 if one.number in best else 3.5
        text = (
            f"{1 - one.score.error:.1%}, {one.score.cycles:,} cycles, evaluation {one.number + 1}: "
            f"{one.derivation.text}"
        )
        yield (
            f'<circle class="{kind}" cx="{scale.x(one.score.cycles):.1f}" '
            f'cy="{scale.y(1 - one.score.error):.1f}" r="{radius}">'
            f"<title>{escape_text(text)}</title></circle>\n"
        )
    yield "</svg></div>\n"


def _axes(scale: _Scale, about: About) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    shares = round_numbers(scale.bottom, scale.top, _MOST_SHARES + 2)
    for share, text in zip(shares, percent_texts(shares), strict=True):
        y = scale.y(share)
        yield f'<path class="axis" d="M{_LEFT} {y:.1f}H{right}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>\n'
    numbers = round_logarithmic(10**scale.low, 10**scale.high, _MOST_CYCLES)
    texts, places = [f"{n:,}" for n in numbers], [scale.x(n) for n in numbers]
    for at in apart(texts, places):
        yield f'<path class="axis" d="M{places[at]:.1f} {_TOP}V{bottom}"/>'
        yield (
            f'<text x="{places[at]:.1f}" y="{bottom + 16}" text-anchor="middle">'
            f"{texts[at]}</text>\n"
        )
    middle = (_LEFT + right) / 2
    yield (
        f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">cycles on '
        f"{escape_text(about.device)}</text>\n"
        f'<text x="14" y="{bottom / 2:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 14 {bottom / 2:.0f})">accuracy</text>\n'
    )


def _steps(front: Sequence[Candidate], scale: _Scale) -> str:
    """A line below which every network lies, from the fewest cycles on."""
    parts: list[str] = []
    for one in sorted(front, key=lambda o: o.score.cycles):
        x, y = scale.x(one.score.cycles), scale.y(1 - one.score.error)
        parts.append(f"{'H' if parts else 'M'}{x:.1f}{'V' if parts else ' '}{y:.1f}")
    return "".join([*parts, f"H{_WIDTH - _RIGHT}"]) if parts else ""


def _legend(result: SearchResult) -> Iterator[str]:
    origins = {one.origin for one in result.found}
    yield "<p>"
    for origin, text in _NAMES.items():
        if origin in origins:
            count = sum(one.origin == origin for one in result.found)
            yield (
                f'<svg width="12" height="12" viewBox="0 0 12 12"><circle class="{origin}" cx="6" '
                f'cy="6" r="5"/></svg> {text} ({count}) &nbsp; '
            )
    yield "The dashed line is the front.</p>\n"


def _curve(result: SearchResult, about: About) -> Iterator[str]:
    """How the hypervolume grew."""
    volumes = [result.hypervolume(about.reference, n) for n in range(1, result.evaluations + 1)]
    most = max(volumes, default=0.0)
    if not most or len(volumes) < 2:
        return
    error, cycles = about.reference
    yield (
        "<h2>Hypervolume by evaluations</h2>\n<p>The share of what lies below "
        f"{error:.0%} errors and {cycles:,.0f} cycles that some network is better than.</p>\n"
    )
    bottom, whole = _CURVE_HEIGHT - 30, error * cycles
    points = []
    for at, volume in enumerate(volumes):
        x = _LEFT + at / (len(volumes) - 1) * (_WIDTH - _LEFT - _RIGHT)
        y = bottom - volume / whole * (bottom - _TOP)
        points.append(f"{x:.1f} {y:.1f}")
    yield (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_CURVE_HEIGHT}" width="{_WIDTH}" '
        f'height="{_CURVE_HEIGHT}" role="img" aria-label="hypervolume">\n'
    )
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = bottom - share * (bottom - _TOP)
        yield f'<path class="axis" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>\n'
    yield f'<path class="curve" d="M{"L".join(points)}"/>\n'
    yield (
        f'<text x="{_WIDTH - _RIGHT}" y="{_CURVE_HEIGHT - 8}" text-anchor="end">'
        f"{len(volumes):,} evaluations, {volumes[-1] / whole:.1%}</text>\n</svg>\n"
    )


def _table(front: Sequence[Candidate]) -> Iterator[str]:
    yield (
        '<h2>The front</h2>\n<div class="wide"><table>\n<tr><th class="n">accuracy</th>'
        '<th class="n">cycles</th><th class="n">parameters</th><th class="n">MACs</th>'
        '<th class="n">evaluation</th><th>stages</th></tr>\n'
    )
    for one in sorted(front, key=lambda o: o.score.cycles):
        yield (
            f'<tr><td class="n">{1 - one.score.error:.1%}</td>'
            f'<td class="n">{one.score.cycles:,}</td><td class="n">{one.counts.parameters:,}</td>'
            f'<td class="n">{one.counts.macs:,}</td><td class="n">{one.number + 1}</td>'
            f'<td class="stages">{escape_text(one.derivation.text)}</td></tr>\n'
        )
    yield "</table></div>\n"
