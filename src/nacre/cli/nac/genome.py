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
from nacre.cli.arrays import WrongUsage, report_write_errors, require_writable, write_all_or_none
from nacre.cli.core.files import format_option, report_findings
from nacre.cli.nac.build import require_file, save_model
from nacre.cli.nac.files import (
    SUFFIX,
    is_folder,
    load_model,
    nac,
    open_file,
    plural,
    require_readable,
    table,
)
from nacre.cli.options import out_option
from nacre.cli.outputs import require_distinct_files

if TYPE_CHECKING:
    from nacre.nac.tools.genome import Genome
    from nacre.nac.tools.phylogeny import Distances
    from nacre.nac.tools.transplant import Transplant

_SHOWN_GENES = 8  # of a block
_SHOWN_GRAMS = 10


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
@format_option
def genome(paths: tuple[str, ...], newick_file: Path | None, svg: Path | None, output: str) -> int:
    """Say of which operations programs are made, which blocks recur, and how alike they are.

    A folder stands for all `.nac` files in it. With several files there is a tree of them.
    """
    written = [path for path in (newick_file, svg) if path is not None]
    for path in written:
        require_writable(path)

    def work() -> None:
        from nacre.nac.tools.genome import genome as made_of
        from nacre.nac.tools.phylogeny import MOST_LEAVES, distances, newick, tree
        from nacre.nac.tools.tree_picture import picture

        files = _expand_paths(paths)
        require_distinct_files(written, files)
        if len(files) > MOST_LEAVES:
            raise click.UsageError(f"{len(files)} files, a tree has at most {MOST_LEAVES}")
        names = _names(files)
        genomes = [made_of(n, open_file(str(f)).file) for n, f in zip(names, files, strict=True)]
        matrix = distances(genomes)
        root = tree(names, matrix)
        text = newick(root)
        with write_all_or_none():
            for target, content in ((newick_file, text), (svg, picture(root) if svg else "")):
                if target is not None:
                    _write(target, content)
        if output == "json":
            click.echo(json.dumps(_as_json(genomes, matrix, text), indent=2))
            return
        click.echo(_as_text(genomes, matrix, text))
        for target in (newick_file, svg):
            if target is not None:
                click.echo(f"wrote {safe(str(target))}")

    return report_findings(work, output)


def _expand_paths(paths: Sequence[str]) -> list[Path]:
    """The files that arguments name, in order; a folder's by name."""
    files: list[Path] = []
    for name in paths:
        path = Path(name)
        if is_folder(path):
            inside = sorted(p for p in path.iterdir() if p.suffix.lower() == SUFFIX)
            if not inside:
                raise WrongUsage(f"{safe(name)} has no `{SUFFIX}` files")
            files += inside
        else:
            files.append(require_readable(name))
    return list(dict.fromkeys(files))


def _names(files: Sequence[Path]) -> list[str]:
    """The names of files; the whole paths where two files have the same."""
    short = [path.name.removesuffix(SUFFIX) for path in files]
    return short if len(set(short)) == len(short) else [str(path) for path in files]


def _write(path: Path, text: str) -> None:
    with report_write_errors(path):
        write_whole(path, [text])


def _as_text(genomes: Sequence[Genome], distances: Distances, tree_text: str) -> str:
    parts = [_genome_text(one) for one in genomes]
    if len(genomes) > 1:
        head = ("similarity", *(str(i) for i in range(len(genomes))))
        rows = [
            (f"{i} {one.name}", *(f"{1 - d:.3f}" for d in distances[i].tolist()))
            for i, one in enumerate(genomes)
        ]
        parts.append(table([head, *rows], frozenset(range(1, len(genomes) + 1))))
        parts.append(safe(tree_text.strip()))
    return "\n\n".join(parts)


def _genome_text(one: Genome) -> str:
    lines = [f"{safe(one.name)}: {one.signature}, {plural(len(one.genes), 'call')}"]
    common = ", ".join(f"{safe(g[0])} {n}" for g, n in one.grams[0].most_common(_SHOWN_GRAMS))
    lines += [f"  {common}"] if common else []
    for block in one.blocks:
        genes = " ".join(block.genes[:_SHOWN_GENES])
        more = f" and {len(block.genes) - _SHOWN_GENES} more" if len(block.genes) > 8 else ""
        lines.append(f"  block {block.signature} {len(block.starts)} times: {safe(genes)}{more}")
    return "\n".join(lines)


def _as_json(genomes: Sequence[Genome], distances: Distances, tree_text: str) -> dict[str, Any]:
    entries = [
        {
            "name": one.name,
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
        for one in genomes
    ]
    return {"genomes": entries, "similarity": (1 - distances).tolist(), "newick": tree_text.strip()}


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
