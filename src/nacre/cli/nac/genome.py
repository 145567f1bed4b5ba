"""`nacre nac genome` and `transplant`: programs compared as genomes, weights moved between them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.excerpt import safe
from nacre.base.files import write_whole
from nacre.cli.arrays import report_write_errors, require_writable, write_all_or_none
from nacre.cli.core.files import format_option, report_findings
from nacre.cli.nac.build import require_file, save_model
from nacre.cli.nac.files import (
    expand_paths,
    load_model,
    nac,
    open_file,
    plural,
    program_names,
    table,
)
from nacre.cli.options import out_option
from nacre.cli.outputs import PAGE_ENDINGS, require_distinct_files, require_ending

if TYPE_CHECKING:
    from nacre.nac.genome.corpus import CorpusProgram
    from nacre.nac.genome.mining import MinedPattern
    from nacre.nac.tools.phylogeny import Distances
    from nacre.nac.tools.transplant import Transplant

    Genes = Sequence[tuple[MinedPattern, int]]

_SHOWN_CALLS = 8  # of a block
_SHOWN_GENES = 12  # of a corpus
_SHOWN_GRAMS = 10
_NEWICK_ENDINGS = (".nwk", ".newick", ".nw", ".tree", ".tre", ".treefile", ".txt")


@nac.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|FOLDER...")
@click.option(
    "--newick",
    "newick_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the tree of all files as Newick text.",
)
@click.option(
    "--svg",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the tree as a picture.",
)
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a page with the tree, the patterns of each program, and the genes that recur.",
)
@format_option
def genome(
    paths: tuple[str, ...],
    newick_file: Path | None,
    svg: Path | None,
    html: Path | None,
    output: str,
) -> int:
    """Say of which operations and patterns programs are made, what recurs, how alike they are.

    A folder stands for all `.nac` files in it. With several files there is a tree of them, and the
    genes that they share.
    """
    written = [path for path in (newick_file, svg, html) if path is not None]
    _require_targets(newick_file, svg, html)

    def work() -> None:
        from nacre.nac.genome.corpus import corpus_program
        from nacre.nac.genome.mining import mine, select_genes
        from nacre.nac.genome.page import corpus_page
        from nacre.nac.tools.phylogeny import MOST_LEAVES, distances, newick, tree
        from nacre.nac.tools.tree_picture import picture

        files = expand_paths(paths)
        require_distinct_files(written, files)
        if len(files) > MOST_LEAVES:
            raise click.UsageError(f"{len(files)} files, a tree has at most {MOST_LEAVES}")
        names = program_names(files)
        programs = [
            corpus_program(name, open_file(str(file)))
            for name, file in zip(names, files, strict=True)
        ]
        matrix = distances([program.genome for program in programs])
        root = tree(names, matrix)
        text = newick(root)
        genes = select_genes(mine([program.graph for program in programs]), _SHOWN_GENES)
        with write_all_or_none():
            if newick_file is not None:
                _write(newick_file, text)
            if svg is not None:
                _write(svg, picture(root))
            if html is not None:
                _write(html, corpus_page(root, programs, genes))
        if output == "json":
            click.echo(json.dumps(_as_json(programs, genes, matrix, text), indent=2))
            return
        click.echo(_as_text(programs, genes, matrix, text))
        for target in written:
            click.echo(f"wrote {safe(str(target))}")

    return report_findings(work, output)


def _require_targets(newick_file: Path | None, svg: Path | None, html: Path | None) -> None:
    """UsageError for what cannot be written, before programs are read and compared."""
    kinds = (
        (newick_file, "a tree as Newick text", _NEWICK_ENDINGS),
        (svg, "a picture", (".svg",)),
        (html, "a page", PAGE_ENDINGS),
    )
    for path, what, endings in kinds:
        if path is not None:
            require_writable(path)
            require_ending(path, what, endings)


def _write(path: Path, text: str) -> None:
    with report_write_errors(path):
        write_whole(path, [text])


def _as_text(
    programs: Sequence[CorpusProgram], genes: Genes, distances: Distances, tree_text: str
) -> str:
    parts = [_program_text(one) for one in programs]
    if len(programs) > 1:
        if genes:
            parts.append("\n".join(_gene_text(gene, count) for gene, count in genes))
        head = ("similarity", *(str(i) for i in range(len(programs))))
        rows = [
            (f"{i} {one.name}", *(f"{1 - d:.3f}" for d in distances[i].tolist()))
            for i, one in enumerate(programs)
        ]
        parts.append(table([head, *rows], frozenset(range(1, len(programs) + 1))))
        parts.append(safe(tree_text.strip()))
    return "\n\n".join(parts)


def _gene_text(gene: MinedPattern, count: int) -> str:
    where = f"{plural(count, 'time')} in {plural(gene.support, 'file')}"
    return f"gene {gene.signature} {where}: {safe(str(gene))}"


def _program_text(program: CorpusProgram) -> str:
    one = program.genome
    lines = [f"{safe(one.name)}: {one.signature}, {plural(len(one.genes), 'call')}"]
    common = ", ".join(f"{safe(g[0])} {n}" for g, n in one.grams[0].most_common(_SHOWN_GRAMS))
    lines += [f"  {common}"] if common else []
    known = ", ".join(f"{name} {count}" for name, count in program.patterns.items())
    lines += [f"  patterns: {known}"] if known else []
    for block in one.blocks:
        genes = " ".join(block.genes[:_SHOWN_CALLS])
        more = f" and {len(block.genes) - _SHOWN_CALLS} more" if len(block.genes) > 8 else ""
        lines.append(f"  block {block.signature} {len(block.starts)} times: {safe(genes)}{more}")
    return "\n".join(lines)


def _as_json(
    programs: Sequence[CorpusProgram], genes: Genes, distances: Distances, tree_text: str
) -> dict[str, Any]:
    entries = [
        {
            "name": one.name,
            "patterns": program.patterns,
            "signature": one.signature,
            "calls": len(one.genes),
            "grams": [
                [{"genes": list(g), "count": n} for g, n in sorted(grams.items())]
                for grams in one.grams
            ],
            "blocks": [
                {"signature": b.signature, "genes": list(b.genes), "places": list(b.starts)}
                for b in one.blocks
            ],
        }
        for program in programs
        for one in (program.genome,)
    ]
    return {
        "genomes": entries,
        "genes": [_gene_json(gene, count) for gene, count in genes],
        "similarity": (1 - distances).tolist(),
        "newick": tree_text.strip(),
    }


def _gene_json(gene: MinedPattern, count: int) -> dict[str, Any]:
    labels, edges = gene.code
    return {
        "signature": gene.signature,
        "count": count,
        "files": [name for name, _ in gene.places],
        "operations": list(labels),
        "edges": [list(edge) for edge in edges],
    }


@nac.command()
@click.argument("source")
@click.argument("target")
@out_option("FILE.nac", "Write the target with its new weights here.", required=True)
@click.option("--from", "source_prefix", default="", metavar="PREFIX",
              help="Take only weights whose names begin so, such as `layers.0.`.")  # fmt: skip
@click.option("--into", "target_prefix", default="", metavar="PREFIX",
              help="Replace only weights whose names begin so.")  # fmt: skip
@format_option
def transplant(
    source: str, target: str, out: Path, source_prefix: str, target_prefix: str, output: str
) -> int:
    """Copy weights of SOURCE into TARGET where their blocks have the same operations and shapes."""
    require_file(out)
    require_distinct_files([out], [source, target])

    def work() -> None:
        from nacre.nac.tools.transplant import prefix_problem
        from nacre.nac.tools.transplant import transplant as transplanted

        donor, recipient = load_model(source), load_model(target)
        for option, name, model, prefix in (
            ("--from", source, donor, source_prefix),
            ("--into", target, recipient, target_prefix),
        ):
            problem = prefix_problem(model, prefix)
            if problem is not None:
                raise click.UsageError(f"{option}: of {safe(name)}, {problem}")
        result, report = transplanted(
            donor, recipient, source_prefix=source_prefix, target_prefix=target_prefix
        )
        is_internal = recipient.file.header.is_internal
        written = save_model(result, out, "internal" if is_internal else "external")
        if not report.copied:
            said = f"no weight was copied, {safe(str(out))} has those of {safe(target)}"
            click.echo(f"nacre: note: {said}", err=True)
        if output == "json":
            click.echo(json.dumps({"path": str(out), **asdict(report)}, indent=2))
            return
        click.echo(_report_text(report))
        for path in written:
            click.echo(f"wrote {safe(str(path))}")

    return report_findings(work, output)


def _report_text(report: Transplant) -> str:
    lines = [
        f"block: instructions {b.source[0]} to {b.source[1]} into {b.target[0]} to {b.target[1]}, "
        f"{plural(len(b.operations), 'call')}"
        for b in report.blocks
    ]
    for c in report.copied:
        lost = f", {c.rounding:.3g} lost in storing" if c.rounding else ""
        into = f"{safe(c.target)} {list(c.shape)}"
        lines.append(f"copied {safe(c.source)} into {into}: moved by {c.max_change:.3g}{lost}")
    lines += [f"left {safe(s.target)}: {s.reason}" for s in report.skipped]
    lines.append(
        f"{plural(len(report.copied), 'weight')} copied, {len(report.skipped)} left as they were"
    )
    return "\n".join(lines)
