"""`nacre nac grammar` and `synthesise`: what networks are made of, and new ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote, safe
from nacre.base.files import write_whole
from nacre.cli.arrays import (
    option_value,
    report_write_errors,
    require_writable,
)
from nacre.cli.core.files import format_option, report_findings
from nacre.cli.nac.files import expand_paths, nac, program_names, table
from nacre.cli.options import Option, WholeNumber, include_root_option, out_option
from nacre.cli.outputs import require_distinct_files, require_empty_folder, write_new_folder

if TYPE_CHECKING:
    from nacre.nac.synthesis.grammar import Grammar
    from nacre.nac.synthesis.learning import Corpus
    from nacre.nac.synthesis.synthesise import Cycles, Individual

_MOST_NUMBER = 1 << 60
_GRAMMAR = ".json"


def parse_dimensions(text: str) -> tuple[int, ...]:
    """`1x3x32x32`; ValueError for what is no shape of an image, a sequence or a vector."""
    parts = text.lower().split("x")
    if not all(is_digits(part) and 0 < len(part) < 10 for part in parts):
        raise ValueError(f"{backquote(text)} is no shape, expected one such as 1x3x32x32")
    shape = tuple(map(int, parts))
    if not 2 <= len(shape) <= 4 or not all(shape):
        wanted = "NxCxHxW, NxTxC or NxC"
        raise ValueError(f"{backquote(text)} has no shape that networks take, expected {wanted}")
    return shape


like_option = click.option(
    "--like",
    multiple=True,
    metavar="FILE|FOLDER",
    help="Learn from these files, or take a grammar in JSON; may be repeated.",
)
input_option = click.option(
    "--input",
    "shape",
    required=True,
    metavar="1x3x32x32",
    type=option_value(parse_dimensions),
    help="The shape that networks take: NxCxHxW, NxTxC or NxC.",
)


def number_option(name: str, help: str) -> Option:
    """An option with a positive number."""
    type_ = WholeNumber(min=1, max=_MOST_NUMBER)
    return click.option(name, type=type_, metavar="N", help=help)


def corpus_from(like: Sequence[str]) -> Corpus:
    """The corpus of the files that `--like` names."""
    from nacre.nac.synthesis.learning import corpus_of

    files = expand_paths(like)
    grammars = [file for file in files if file.suffix.lower() == _GRAMMAR]
    if grammars and len(files) > 1:
        raise click.UsageError("--like takes one grammar, or files to learn one from")
    return corpus_of(files, None if grammars else program_names(files))


def cycles_on(device: str | None, include_roots: tuple[Path, ...]) -> Cycles | None:
    """What says how long a model takes on a device; None of one that does not fit."""
    if device is None:
        return None
    from nacre.compile.estimate.estimate import estimate
    from nacre.compile.target import target_of

    target = target_of(device, include_roots).device

    def cycles(model: object) -> int | None:
        found = estimate(model, target)
        return found.cycles if found.fits else None

    return cycles


@nac.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|FOLDER...")
@out_option("FILE.json", "Write the grammar here.")
@format_option
def grammar(paths: tuple[str, ...], out: Path | None, output: str) -> int:
    """Learn of which blocks networks are made, what stands behind what, and how blocks look.

    A folder stands for all `.nac` files in it. The grammar is what `synthesise` and `search` draw
    from; one in JSON is shown as it is.
    """
    if out is not None:
        require_writable(out)

    def work() -> None:
        if out is not None:
            require_distinct_files([out], expand_paths(paths))
        learned = corpus_from(paths).grammar
        if out is not None:
            with report_write_errors(out):
                write_whole(out, [learned.to_json(), "\n"])
        if output == "json":
            click.echo(learned.to_json())
            return
        click.echo(_grammar_text(learned))
        if out is not None:
            click.echo(f"wrote {safe(str(out))}")

    return report_findings(work, output)


def _grammar_text(learned: Grammar) -> str:
    count = len(learned.networks)
    networks = "1 network" if count == 1 else f"{count:,} networks"
    head = f"{networks}, {len(learned.productions):,} productions"
    rows = []
    for place, choices in learned.choices.items():
        total = sum(count for _, count in choices)
        ordered = sorted(choices, key=lambda row: -row[1])
        shown = ", ".join(
            f"{choice:g} {count}" if type(choice) is float else f"{choice} {count}"
            for choice, count in ordered
        )
        rows.append((place, str(total), shown))
    return f"{head}\n\n{table([('place', 'count', 'choices'), *rows], frozenset({1}))}"


@nac.command()
@like_option
@input_option
@number_option("--params", "The most parameters.")
@number_option("--macs", "The most products of a run.")
@number_option("--classes", "Scores of a network. Default: as most files have.")
@click.option("--device", metavar="D", help="Estimate cycles on this device.")
@include_root_option
@click.option("--count", type=WholeNumber(1, 10_000), default=1, show_default=True, metavar="K",
              help="How many networks.")  # fmt: skip
@click.option("--seed", type=WholeNumber(0, _MOST_NUMBER), default=0, show_default=True,
              help="The same seed gives the same bytes.")  # fmt: skip
@out_option(
    "FOLDER", "Write each network as a `.nac` into this folder, new or empty.", is_folder=True
)
@format_option
def synthesise(
    like: tuple[str, ...],
    shape: tuple[int, ...],
    params: int | None,
    macs: int | None,
    classes: int | None,
    device: str | None,
    include_roots: tuple[Path, ...],
    count: int,
    seed: int,
    out: Path | None,
    output: str,
) -> int:
    """Make new networks of what others are made of, within budgets.

    Each is verified, runs and can be trained; its weights are drawn. Without --like the grammar is
    that of the network families which come along.
    """
    if out is not None:
        require_empty_folder(out)

    def work() -> None:
        from nacre.nac.synthesis.synthesise import synthesise as synthesised

        cycles = cycles_on(device, include_roots)  # first: learning takes its time
        corpus = corpus_or_families(like)
        try:
            made = synthesised(
                corpus, shape, params=params, macs=macs, classes=classes, count=count, seed=seed,
                cycles=cycles,
            )  # fmt: skip
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        written = [] if out is None else save_all(made, out, expand_paths(like))
        if output == "json":
            click.echo(json.dumps([individual_json(one) for one in made], indent=2))
            return
        click.echo(individuals_text(made, device))
        for path in written:
            click.echo(f"wrote {safe(str(path))}")

    return report_findings(work, output)


def corpus_or_families(like: Sequence[str]) -> Corpus:
    """The corpus of files, or of the families that come along."""
    if like:
        return corpus_from(like)
    from nacre.nac.synthesis.families import families_corpus

    return families_corpus()


def save_all(made: Sequence[Individual], folder: Path, read: Sequence[Path] = ()) -> list[Path]:
    """Write all networks, or none, and over none that was read."""
    from nacre.nac.format.file import to_bytes

    require_distinct_files([folder / f"{one.name}.nac" for one in made], read)
    paths = [folder / f"{one.name}.nac" for one in made]
    files = {path.name: [to_bytes(one.model.file)] for path, one in zip(paths, made, strict=True)}
    write_new_folder(folder, files)
    return paths


def individual_json(one: Individual) -> dict[str, Any]:
    """A network for programs."""
    return {
        "name": one.name,
        "parameters": one.parameters,
        "macs": one.macs,
        "cycles": one.cycles,
        "nearest": one.nearest or None,
        "distance": one.distance,
        "stages": [
            {
                "block": stage.block,
                "width": stage.width if stage.kind.sets_width else None,
                "repeat": stage.repeat,
                **{name: getattr(stage.settings, name) for name in stage.kind.settings},
            }
            for stage in one.derivation.stages
        ],
        "text": one.derivation.text,
    }


def individuals_text(made: Sequence[Individual], device: str | None) -> str:
    """Networks as a table."""
    head = ("network", "parameters", "MACs", f"cycles on {device}" if device else "",
            "distance", "nearest", "stages")  # fmt: skip
    rows = [
        (
            one.name,
            f"{one.parameters:,}",
            f"{one.macs:,}",
            ("does not fit" if one.cycles is None else f"{one.cycles:,}") if device else "",
            "" if one.distance is None else f"{one.distance:.3f}",
            one.nearest,
            one.derivation.text,
        )
        for one in made
    ]
    kept = [at for at in range(len(head)) if any(row[at] for row in rows)]
    shown = [[row[at] for at in kept] for row in (head, *rows)]
    return table(shown, frozenset(i for i, at in enumerate(kept) if at in (1, 2, 3, 4)))
