"""`nacre llm run`: a prompt in, text out as it comes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.stages import stage
from nacre.cli.arrays import WrongUsage, unreadable_reason
from nacre.cli.core.files import report_findings
from nacre.cli.llm.group import (
    LONGEST_CONTEXT,
    is_bundle_folder,
    llm,
    open_model_file,
    speculation_text,
    time_text,
)
from nacre.cli.options import RealNumber, WholeNumber
from nacre.cli.terminal.progress import hold_stages

if TYPE_CHECKING:
    from nacre.llm.bundle.llm_bundle import LlmBundle
    from nacre.llm.chat import TextInterface
    from nacre.llm.encoder_decoder.model import Features, SourceInput
    from nacre.llm.sampling import Sampling


@llm.command()
@click.argument("model", metavar="FILE.gguf|FILE.onnx|CHECKPOINT|FOLDER")
@click.option(
    "--prompt", "prompts", multiple=True, metavar="TEXT",
    help="What to go on from, to answer, or to write about. May be repeated for a bundle that was "
    "built with --batch.",
)  # fmt: skip
@click.option(
    "--features", type=click.Path(path_type=Path), metavar="FILE.npy",
    help="Of a model that hears: the logarithms of a spectrum, [mels, frames].",
)  # fmt: skip
@click.option("--system", metavar="TEXT", help="A message of the system before it.")
@click.option("--raw", is_flag=True, help="Take the prompt as it is, without the chat template.")
@click.option(
    "--max-tokens", type=WholeNumber(min=1), default=256, show_default=True, metavar="N",
    help="How many tokens to write at most.",
)  # fmt: skip
@click.option(
    "--context", type=WholeNumber(min=1), metavar="N",
    help="Rows of the cache. Default: what the prompt and the answer need.",
)  # fmt: skip
@click.option(
    "--temperature", type=RealNumber(min=0), default=0.0, show_default=True, metavar="T",
    help="0: the likeliest token; above, tokens are drawn.",
)  # fmt: skip
@click.option("--top-k", type=WholeNumber(min=0), default=0, help="Of so many likeliest tokens.")
@click.option(
    "--top-p", type=RealNumber(min=0, min_open=True, max=1), default=1.0,
    help="Of the likeliest that have this share together.",
)  # fmt: skip
@click.option("--seed", type=WholeNumber(min=0), default=0, help="What draws follow from.")
@click.option(
    "--draft", metavar="FOLDER",
    help="A bundle of a smaller model whose guesses are checked several at a time, by a bundle "
    "that was built with --draft-tokens.",
)  # fmt: skip
@click.option(
    "--draft-tokens", type=WholeNumber(min=1), metavar="N",
    help="How many it guesses at a time. Default: as many as are checked at once.",
)  # fmt: skip
@click.option("--timed", is_flag=True, help="Say what the plans of a bundle take on the device.")
def run(
    model: str,
    prompts: tuple[str, ...],
    features: Path | None,
    system: str | None,
    raw: bool,
    max_tokens: int,
    context: int | None,
    temperature: float,
    top_k: int,
    top_p: float,
    seed: int,
    draft: str | None,
    draft_tokens: int | None,
    timed: bool,
) -> int:
    """Write what a model says to a prompt, token by token.

    A file, or a folder of transformers, runs in f32 on the evaluator of Core IR; a folder of
    `nacre llm build` by its plans, bit-true. A file with a chat template is asked by it.
    """
    is_bundle = is_bundle_folder(model)
    if bool(prompts) == (features is not None):
        raise click.UsageError("give --prompt, or --features for a model that hears")
    if timed and not is_bundle:
        raise click.UsageError("--timed is for the folder of a bundle: see `nacre llm build`")
    if context is not None and is_bundle:
        raise click.UsageError("--context is for files: a bundle has its own")
    if not is_bundle and (draft is not None or len(prompts) > 1):
        raise click.UsageError("--draft and several prompts are for the folder of a bundle")
    if draft is not None and len(prompts) > 1:
        raise click.UsageError("--draft is for one prompt at a time")
    if draft is None and draft_tokens is not None:
        raise click.UsageError("--draft-tokens is for --draft")

    def work() -> None:
        from nacre.llm.sampling import Sampling

        sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        heard = None if features is None else _read_features(features)
        request = _Request(prompts, heard, system, raw, max_tokens, sampling, draft, draft_tokens)
        if not is_bundle:
            _run_file(model, request, context)
        elif len(prompts) > 1:
            _run_batch(model, request, timed)
        else:
            _run_bundle(model, request, timed)

    return report_findings(work)


@dataclass(frozen=True)
class _Request:
    """What is asked of a model."""

    prompts: tuple[str, ...]
    features: Features | None
    system: str | None
    is_raw: bool
    max_tokens: int
    sampling: Sampling
    draft: str | None
    draft_tokens: int | None

    @property
    def prompt(self) -> str:
        """The one that there is."""
        return self.prompts[0]

    def source(self, text: TextInterface) -> SourceInput:
        """What is heard, or the tokens of the prompt."""
        if self.features is not None:
            return self.features
        return text.prompt_ids(self.prompt, self.system)


def _run_file(name: str, request: _Request, context: int | None) -> None:
    from nacre.llm.chat import LanguageModel

    with stage("reading"):
        model = LanguageModel.from_gguf(open_model_file(name), with_template=not request.is_raw)
    ids = request.source(model.text)
    known = model.decoder.config.context
    wanted = min(known, max(len(ids) + request.max_tokens, 1), max(LONGEST_CONTEXT, len(ids)))
    _write(
        model.generate(
            ids,
            max_tokens=request.max_tokens,
            context=context or wanted,
            sampling=request.sampling,
        )
    )


def _run_bundle(folder: str, request: _Request, is_timed: bool) -> None:
    from nacre.llm.chat import require_room

    bundle = _load(folder)
    draft = None if request.draft is None else _load(request.draft)
    text = _text_of(bundle, request)
    if bundle.encoder is not None or request.features is not None:
        about = bundle.source_runner()
        about.read(request.source(text))
        _write(text.generate(about, [about.start], request.max_tokens, request.sampling))
        if is_timed:
            click.echo(time_text(bundle.time(), 1), err=True)
        return
    ids = text.prompt_ids(request.prompt, request.system)
    require_room(folder, ids, bundle.context)
    guessed = None if draft is None else bundle.speculative_runner(draft, request.draft_tokens)
    runner = guessed or bundle.runner()
    _write(text.generate(runner, ids, request.max_tokens, request.sampling))
    if is_timed:
        click.echo(time_text(bundle.time(), len(ids)), err=True)
    if is_timed and draft is not None and guessed is not None:
        click.echo(speculation_text(bundle.speculation_time(guessed, draft)), err=True)


def _run_batch(folder: str, request: _Request, is_timed: bool) -> None:
    bundle = _load(folder)
    bundle = replace(bundle, text=_text_of(bundle, request))
    found = bundle.generate_all(
        request.prompts, max_tokens=request.max_tokens, system=request.system,
        **vars(request.sampling),
    )  # fmt: skip
    for number, text in enumerate(found, 1):
        click.echo(f"{number}: {text}")
    if is_timed:
        time = bundle.time()
        rate = f"{time.batched_tokens_per_second:,.1f} tokens/s"
        click.echo(
            f"{time.batch:,} texts at once: {rate} ({time.batched_cycles:,} cycles)", err=True
        )


def _load(folder: str) -> LlmBundle:
    from nacre.llm.bundle.llm_bundle import LlmBundle

    with stage("reading"):
        return LlmBundle.load(folder, cache=True)


def _text_of(bundle: LlmBundle, request: _Request) -> TextInterface:
    text = bundle.require_text()
    return replace(text, template=None) if request.is_raw else text


def _read_features(path: Path) -> Features:
    from nacre.nem.api.ddr import load_npy

    reason = unreadable_reason(path)
    if reason is not None:
        raise WrongUsage(reason)
    return load_npy(path, "`--features`")


def _write(pieces: Iterable[str]) -> None:
    """Text as it comes; what a model says drives no terminal, and no stage stands between it."""
    coming = iter(pieces)
    first = next(coming, "")
    with hold_stages():
        for piece in chain([first], coming):
            click.echo(piece, nl=False)
            sys.stdout.flush()
        click.echo()
