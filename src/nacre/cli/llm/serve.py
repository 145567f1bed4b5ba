"""`nacre llm serve`: a model behind HTTP, for clients of OpenAI's interface."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.excerpt import safe
from nacre.base.stages import stage
from nacre.cli.arrays import WrongUsage
from nacre.cli.core.files import report_findings
from nacre.cli.llm.group import LONGEST_CONTEXT, is_bundle_folder, llm, open_model_file
from nacre.cli.options import WholeNumber

if TYPE_CHECKING:
    from nacre.llm.serve.model import ServedModel
    from nacre.llm.serve.server import LlmServer

_PORT = 8080

_ABOUT_SOURCES = "the model has an encoder: texts about a source are not served"


@llm.command()
@click.argument("model", metavar="FILE.gguf|FILE.onnx|CHECKPOINT|FOLDER")
@click.option(
    "--port", type=WholeNumber(0, 65_535), default=_PORT, show_default=True, metavar="N",
    help="Where it answers, on 127.0.0.1 alone; 0 takes one that is free.",
)  # fmt: skip
@click.option(
    "--context", type=WholeNumber(min=1), metavar="N",
    help=f"Rows of the cache. Default: {LONGEST_CONTEXT:,}, or what the model knows if that is "
    "less; a bundle has its own.",
)  # fmt: skip
def serve(model: str, port: int, context: int | None) -> int:
    """Answer /v1/completions and /v1/chat/completions on this machine, until it is interrupted.

    A file, or a folder of transformers, runs in f32 on the evaluator of Core IR; a folder of
    `nacre llm build` by its plans, bit-true. One text is written at a time.
    """
    is_bundle = is_bundle_folder(model)
    if context is not None and is_bundle:
        raise click.UsageError("--context is for files: a bundle has its own")

    def work() -> None:
        served = _served_bundle(model) if is_bundle else _served_file(model, context)
        with _open_server(served, port) as server:
            click.echo(f"{safe(served.name)} answers at {server.url}; Ctrl-C ends it")
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()

    return report_findings(work)


def _open_server(served: ServedModel, port: int) -> LlmServer:
    from nacre.llm.serve.server import LlmServer

    try:
        return LlmServer(served, port)
    except OSError as error:
        raise WrongUsage(f"port {port} cannot be had: {error.strerror}") from None


def _served_file(name: str, context: int | None) -> ServedModel:
    from nacre.llm.chat import CHUNK, LanguageModel
    from nacre.llm.encoder_decoder.model import EncoderDecoder
    from nacre.llm.model.problems import refusal
    from nacre.llm.rules.model import LLM05
    from nacre.llm.serve.model import ServedModel

    with stage("reading"):
        model = LanguageModel.from_gguf(open_model_file(name))
    rows = context or min(LONGEST_CONTEXT, model.decoder.config.context)
    if isinstance(model.decoder, EncoderDecoder):
        raise refusal(LLM05, name, _ABOUT_SOURCES)
    with stage("building the steps"):
        runner = model.decoder.runner(rows, min(CHUNK, rows))
    return ServedModel(Path(name).stem, model.text, runner)


def _served_bundle(folder: str) -> ServedModel:
    from nacre.llm.bundle.llm_bundle import LlmBundle
    from nacre.llm.model.problems import refusal
    from nacre.llm.rules.model import LLM05
    from nacre.llm.serve.model import ServedModel

    with stage("reading"):
        bundle = LlmBundle.load(folder, cache=True)
    if bundle.encoder is not None:
        raise refusal(LLM05, folder, _ABOUT_SOURCES)
    return ServedModel(Path(folder).resolve().name, bundle.require_text(), bundle.runner())
