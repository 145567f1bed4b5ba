"""`nacre nac search`: networks that err less, or that take fewer cycles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.excerpt import safe
from nacre.base.files import write_whole
from nacre.cli.arrays import (
    WrongUsage,
    require_writable,
    write_all_or_none,
)
from nacre.cli.calibration import read_calibration
from nacre.cli.core.files import format_option, report_findings
from nacre.cli.nac.files import expand_paths, nac, table
from nacre.cli.nac.synthesis import corpus_or_families, cycles_on, like_option, number_option
from nacre.cli.options import WholeNumber, include_root_option, out_option
from nacre.cli.outputs import (
    require_distinct_files,
    require_empty_folder,
    require_page_name,
    write_new_folder,
)
from nacre.cli.terminal.progress import watch_progress

if TYPE_CHECKING:
    from nacre.nac.synthesis.evaluation import Evaluator
    from nacre.nac.synthesis.examples import Examples
    from nacre.nac.synthesis.search import Candidate, SearchResult, Tuner

_MOST_NUMBER = 1 << 60


@nac.command()
@like_option
@click.option("--data", default="digits", show_default=True, metavar="digits|figures|FILE.npz",
              help="What networks are trained on: a file has `images` and `labels`.")  # fmt: skip
@number_option("--params", "The most parameters.")
@number_option("--macs", "The most products of a run.")
@click.option("--device", default="npm4k", show_default=True, metavar="D",
              help="The device that cycles are estimated on.")  # fmt: skip
@include_root_option
@click.option("--evaluations", type=WholeNumber(1, 100_000), default=60, show_default=True,
              metavar="N", help="How many networks are trained and timed.")  # fmt: skip
@click.option("--steps", type=WholeNumber(1, 100_000), default=40, show_default=True,
              metavar="N", help="How many steps each is trained for.")  # fmt: skip
@click.option("--seed", type=WholeNumber(0, _MOST_NUMBER), default=0, show_default=True)
@click.option("--tune", type=click.Choice(["optuna"]),
              help="Let optuna propose widths and repetitions, too (extra `search`).")  # fmt: skip
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE",
              help="Write a page with all networks and the front.")  # fmt: skip
@out_option(
    "FOLDER",
    "Write the front as trained `.nac` files into this folder, new or empty.",
    is_folder=True,
)
@format_option
def search(
    like: tuple[str, ...],
    data: str,
    params: int | None,
    macs: int | None,
    device: str,
    include_roots: tuple[Path, ...],
    evaluations: int,
    steps: int,
    seed: int,
    tune: str | None,
    html: Path | None,
    out: Path | None,
    output: str,
) -> int:
    """Search for networks that do best after short training, in as few cycles as can be.

    Evolution over the grammar of --like, or of the families that come along: the front are those
    networks of which no other is better in one way and no worse in the other.
    """
    if html is not None:
        require_page_name(html)
        require_writable(html)
    if out is not None:
        require_empty_folder(out)
    tuner = None if tune is None else _tuner(seed)

    def work() -> None:
        from nacre.nac.synthesis.evaluation import Evaluator
        from nacre.nac.synthesis.search import search as searched
        from nacre.nac.synthesis.short_training import Course
        from nacre.nac.synthesis.synthesise import request_of

        read = [*expand_paths(like), *([Path(data)] if data.endswith(".npz") else [])]
        require_distinct_files([html] if html is not None else [], read)
        examples = _examples(data)
        corpus = corpus_or_families(like)
        cycles = cycles_on(device, include_roots)
        assert cycles is not None
        request = request_of(corpus.grammar, examples.shape, params, macs, examples.classes)
        evaluator = Evaluator(examples, cycles, Course(steps=steps, seed=seed))
        with watch_progress("training and timing", "networks", is_whole=True) as progress:
            result = searched(
                corpus.grammar, request, evaluator, evaluations, seed, tuner=tuner, watch=progress
            )
        written = _write_all(result, evaluator, device, html, out, read)
        if output == "json":
            click.echo(json.dumps(_as_json(result), indent=2))
            return
        click.echo(_as_text(result, device))
        for path in written:
            click.echo(f"wrote {safe(str(path))}")

    return report_findings(work, output)


def _tuner(seed: int) -> Tuner:
    try:
        from nacre.nac.synthesis.numbers import OptunaTuner
    except ImportError:
        raise WrongUsage("--tune optuna needs optuna: install `nacre[search]`") from None
    return OptunaTuner(seed)


def _examples(name: str) -> Examples:
    from nacre.nac.synthesis.examples import EXAMPLES, examples_of

    if name in EXAMPLES:
        return EXAMPLES[name]()
    return examples_of(read_calibration(Path(name)), name)


def _write_all(
    result: SearchResult,
    evaluator: Evaluator,
    device: str,
    html: Path | None,
    out: Path | None,
    read: Sequence[Path],
) -> list[Path]:
    """Write the page and the files of the front, all or none; what was written."""
    from nacre.nac.synthesis.page import About, search_page

    pages: dict[Path, str] = {}
    if html is not None:
        examples, course = evaluator.examples, evaluator.course
        about = About(examples.name, device, course.steps, result.reference(examples.classes))
        pages[html] = search_page(result, about)
    if out is None:
        with write_all_or_none():
            for path, text in pages.items():
                write_whole(path, [text])
        return list(pages)
    networks = _front_files(result, evaluator)
    require_distinct_files([out / name for name in networks], read)
    inside = {path.name: [text.encode()] for path, text in pages.items() if _lies_in(path, out)}
    beside = {path: text for path, text in pages.items() if not _lies_in(path, out)}
    write_new_folder(out, {**networks, **inside}, beside)
    return [*pages, *(out / name for name in networks)]


def _lies_in(path: Path, folder: Path) -> bool:
    return path.absolute().parent.resolve() == folder.resolve()


def _front_files(result: SearchResult, evaluator: Evaluator) -> dict[str, list[bytes]]:
    from nacre.nac.format.file import to_bytes

    return {
        f"front-{at}.nac": [to_bytes(evaluator.trained_model(one.derivation).file)]
        for at, one in enumerate(result.front)
    }


def _as_text(result: SearchResult, device: str) -> str:
    head = ("", "accuracy", f"cycles on {device}", "parameters", "MACs", "evaluation", "stages")
    rows = [_row(at, one) for at, one in enumerate(result.front)]
    left = result.evaluations - len(result.found)
    said = f"{len(result.found)} networks, {len(rows)} of them on the front"
    said += f"; {left} did not fit {safe(device)}" if left else ""
    return f"{table([head, *rows], frozenset(range(1, 6)))}\n\n{said}"


def _row(at: int, one: Candidate) -> tuple[str, ...]:
    numbers = (one.score.cycles, one.counts.parameters, one.counts.macs, one.number + 1)
    return (
        f"front-{at}",
        f"{1 - one.score.error:.3f}",
        *(f"{n:,}" for n in numbers),
        one.derivation.text,
    )


def _as_json(result: SearchResult) -> dict[str, Any]:
    front = {one.number for one in result.front}
    return {
        "evaluations": result.evaluations,
        "networks": [
            {
                "evaluation": one.number + 1,
                "accuracy": 1 - one.score.error,
                "cycles": one.score.cycles,
                "parameters": one.counts.parameters,
                "macs": one.counts.macs,
                "origin": one.origin,
                "front": one.number in front,
                "text": one.derivation.text,
            }
            for one in result.found
        ],
    }
