"""`nacre llm build`: plans for a device from a GGUF file or a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.excerpt import safe
from nacre.cli.arrays import report_write_errors
from nacre.cli.compile_options import PrecisionName, group_size_option
from nacre.cli.core.files import report_findings
from nacre.cli.llm.group import llm, open_model_file, time_text
from nacre.cli.options import WholeNumber, ddr_size_option, include_root_option, out_option
from nacre.compile.options import GROUP_SIZE, PRECISION_ALIASES
from nacre.llm.bundle.precisions import PLAN_PRECISIONS

if TYPE_CHECKING:
    from nacre.llm.bundle.llm_bundle import WeightLosses


@llm.command()
@click.argument("model", metavar="FILE.gguf|FILE.onnx|CHECKPOINT")
@click.option("--device", required=True, metavar="D", help="A built-in device or a file.")
@include_root_option
@click.option(
    "--precision", type=PrecisionName((*PLAN_PRECISIONS, *PRECISION_ALIASES)), default="f16",
    metavar=f"[{'|'.join(PLAN_PRECISIONS)}]", show_default=True,
    help="Of weights of 8 or 4 bits all else is f16.",
)  # fmt: skip
@group_size_option
@click.option(
    "--keep-blocks/--no-keep-blocks", default=True,
    help="Whether w8f16 and w4f16 take weights of Q4_0, Q4_1 and Q8_0 as the file has them, or "
    "round all weights anew. Default: they do.",
)  # fmt: skip
@click.option(
    "--context", type=WholeNumber(min=1), default=512, show_default=True, metavar="N",
    help="Rows of the cache.",
)  # fmt: skip
@click.option(
    "--classes/--no-classes", default=True,
    help="Whether texts that are shorter get plans of 512, 1,024, ... rows, where a token takes a "
    "twentieth fewer cycles by them. Default: they do.",
)  # fmt: skip
@click.option(
    "--chunk", type=WholeNumber(min=1), default=32, show_default=True, metavar="N",
    help="Tokens of a prompt that are read at once.",
)  # fmt: skip
@click.option(
    "--batch", type=WholeNumber(min=1), default=1, show_default=True, metavar="N",
    help="Texts of which a further plan writes a token each at once.",
)  # fmt: skip
@click.option(
    "--draft-tokens", type=WholeNumber(min=0), default=0, show_default=True, metavar="K",
    help="Guesses of a smaller model that a further plan checks at once: see `run --draft`.",
)  # fmt: skip
@click.option(
    "--source-rows", type=WholeNumber(min=1), metavar="N",
    help="Of a model with an encoder of tokens: how many a source has at most. Default: 128.",
)  # fmt: skip
@ddr_size_option
@out_option("FOLDER", "Where the bundle goes.", is_folder=True, required=True)
def build(
    model: str,
    device: str,
    include_roots: tuple[Path, ...],
    precision: str,
    group_size: str | None,
    keep_blocks: bool,
    context: int,
    classes: bool,
    chunk: int,
    batch: int,
    draft_tokens: int,
    source_rows: int | None,
    ddr_size: int,
    out: Path,
) -> int:
    """Compile a model to a plan for chunks of a prompt and one for single tokens.

    CHECKPOINT is a folder that `save_pretrained` of transformers wrote.
    `nacre llm run FOLDER` runs them, bit-true.
    """
    if group_size is not None and precision not in GROUP_SIZE:
        raise click.UsageError("--group-size is for --precision w8f16 and w4f16")

    def work() -> None:
        from nacre.compile.target import target_of
        from nacre.llm.bundle.llm_bundle import build as build_bundle
        from nacre.llm.bundle.storage import require_free

        require_free(out)

        made = build_bundle(
            open_model_file(model), target_of(device, include_roots).device, precision,
            context=context, chunk=chunk, ddr_bytes=ddr_size, classes=classes,
            group_size=None if group_size is None else int(group_size), keeps_blocks=keep_blocks,
            batch=batch, draft_tokens=draft_tokens, source_rows=source_rows,
        )  # fmt: skip
        with report_write_errors():
            made.save(out, cache=True)
        time = made.time()
        click.echo(f"{safe(str(out))}: {time_text(time)}")
        if made.batched is not None:
            rate = time.batched_tokens_per_second
            click.echo(f"{made.batch:,} texts at once: {rate:,.1f} tokens/s")
        if made.verify is not None:
            cycles = time.verify_cycles
            click.echo(f"checks {draft_tokens:,} tokens of a draft in {cycles:,} cycles")
        for rows in made.shorter:
            rate = made.time(rows).tokens_per_second
            click.echo(f"up to {rows:,} tokens: {rate:,.1f} tokens/s")
        losses = made.weight_losses
        if losses.products:
            click.echo(_losses_text(losses))

    return report_findings(work)


def _losses_text(losses: WeightLosses) -> str:
    """How many products have the integers of the file, and what the others lose."""
    kept = losses.products - len(losses.rounded)
    text = f"weights of {kept:,} of {losses.products:,} products are those of the file"
    if not losses.rounded:
        return text
    worst, middle = losses.rounded[0], losses.rounded[len(losses.rounded) // 2]
    return f"{text}, the others are rounded to {middle:.1f} dB, {worst:.1f} dB at worst"
