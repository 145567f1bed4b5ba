"""A corpus as a page: its tree, the patterns of each program, and the genes that recur.

One file that needs neither network nor scripts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from nacre.nac.genome.corpus import CorpusProgram
from nacre.nac.genome.library import LIBRARY
from nacre.nac.genome.mining import MinedPattern
from nacre.nac.tools.html_page import escape_text, html_page
from nacre.nac.tools.phylogeny import Node
from nacre.nac.tools.tree_picture import picture


def corpus_page(
    root: Node, programs: Sequence[CorpusProgram], genes: Sequence[tuple[MinedPattern, int]]
) -> str:
    """The page as text."""
    ordered = {program.name: program for program in programs}
    rows = [ordered[name] for name in root.leaves]
    count = len(rows)
    title = f"{count} networks by likeness"
    parts = (
        f"<h1>{title}</h1>\n"
        "<p>Networks that meet further right are more alike: they have the same runs of operations "
        "in like shares.</p>\n",
        f'<section class="tree wide">\n{picture(root)}</section>\n',
        *_pattern_table(rows),
        *_gene_table(genes, count),
    )
    return html_page(title, "".join(parts))


def _pattern_table(rows: Sequence[CorpusProgram]) -> Iterator[str]:
    used = [p for p in LIBRARY if any(p.name in row.patterns for row in rows)]
    yield "<h2>Patterns with a name</h2>\n"
    if not used:
        yield "<p>None of the library is in these networks.</p>\n"
        return
    yield "<p>How often each occurs; the darker, the more often among its column.</p>\n"
    yield '<div class="wide"><table>\n<tr><th>network</th><th class="n">calls</th>'
    for pattern in used:
        yield f'<th class="n" title="{escape(pattern.meaning)}">{escape(pattern.name)}</th>'
    yield "</tr>\n"
    most = {p.name: max(row.patterns.get(p.name, 0) for row in rows) for p in used}
    for row in rows:
        yield f'<tr><td>{escape_text(row.name)}</td><td class="n">{len(row.genome.genes):,}</td>'
        for pattern in used:
            yield _cell(row.patterns.get(pattern.name, 0), most[pattern.name])
        yield "</tr>\n"
    yield "</table></div>\n"


def _cell(count: int, most: int) -> str:
    if not count:
        return '<td class="n"></td>'
    shade = 0.08 + 0.5 * count / most
    return f'<td class="n" style="background:rgba(var(--cell),{shade:.2f})">{count:,}</td>'


def _gene_table(genes: Sequence[tuple[MinedPattern, int]], programs: int) -> Iterator[str]:
    yield "<h2>Genes that recur</h2>\n"
    if not genes:
        yield "<p>No part of two operations or more is in two networks.</p>\n"
        return
    yield (
        "<p>Connected parts of the graphs, found without a name; each is counted where those above "
        "it leave room.</p>\n"
        '<div class="wide"><table>\n<tr><th>signature</th><th class="n">networks</th>'
        '<th class="n">times</th><th>operations and what they feed</th></tr>\n'
    )
    for gene, count in genes:
        yield (
            f'<tr><td><code>{gene.signature}</code></td><td class="n">{gene.support} of {programs}'
            f'</td><td class="n">{count:,}</td>'
            f'<td class="gene">{escape_text(str(gene))}</td></tr>\n'
        )
    yield "</table></div>\n"
