"""`nacre llm estimate`: does a language model fit a device, and how fast is it at most?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.excerpt import safe
from nacre.cli.arrays import WrongUsage, unreadable_reason
from nacre.cli.compile_options import PrecisionName, group_size_option
from nacre.cli.core.files import format_option, report_findings
from nacre.cli.exit_status import ERRORS_FOUND
from nacre.cli.llm.group import LONGEST_CONTEXT, llm, open_gguf
from nacre.cli.nac.files import table
from nacre.cli.options import RealNumber, WholeNumber, ddr_size_option, include_root_option
from nacre.compile.options import PRECISION_ALIASES
from nacre.llm.bundle.precisions import PLAN_PRECISIONS
from nacre.llm.estimate.sizes import PRECISIONS

if TYPE_CHECKING:
    from nacre.llm.estimate.bounds import ModelEstimate, StepBound
    from nacre.llm.estimate.sizes import ModelSizes, Precision


@llm.command()
@click.argument("model", metavar="FILE.gguf|config.json|CHECKPOINT")
@click.option(
    "--device", "devices", multiple=True, required=True, metavar="D",
    help="A built-in device or a file; may be repeated, to compare them.",
)  # fmt: skip
@include_root_option
@click.option(
    "--precision", type=PrecisionName((*PRECISIONS, *PRECISION_ALIASES)), default="f16",
    metavar=f"[{'|'.join(PRECISIONS)}]", show_default=True, help="Of weights and products.",
)  # fmt: skip
@group_size_option
@click.option(
    "--context", type=WholeNumber(min=1), metavar="N",
    help=f"Rows of the cache. Default: {LONGEST_CONTEXT:,}, or what the model knows if that is "
    "less.",
)  # fmt: skip
@click.option(
    "--plans", is_flag=True,
    help="Cycles as plans take them, told from plans of a few layers, in half a minute a device.",
)  # fmt: skip
@click.option("--clock", type=RealNumber(min=0, min_open=True), metavar="MHZ")
@ddr_size_option
@format_option
def estimate(
    model: str,
    devices: tuple[str, ...],
    include_roots: tuple[Path, ...],
    precision: Precision,
    group_size: str | None,
    context: int | None,
    plans: bool,
    clock: float | None,
    ddr_size: int,
    output: str,
) -> int:
    """Say whether a model fits devices, and the least that a prompt and a token take.

    No weights are read: a configuration of transformers is enough. Cycles are bounds, of the bytes
    that must pass DDR and the products that must be computed; a plan takes longer, and --plans says
    how long.

    Exit status: 0 it fits every device, 1 it does not or something is wrong with it, 2 wrong usage.
    """
    return estimate_language_model(
        model, devices, include_roots, precision, group_size, context, clock, ddr_size, output,
        plans=plans,
    )  # fmt: skip


def estimate_language_model(
    model: str,
    devices: tuple[str, ...],
    include_roots: tuple[Path, ...],
    precision: Precision,
    group_size: str | None,
    context: int | None,
    clock: float | None,
    ddr_size: int,
    output: str,
    *,
    plans: bool = False,
) -> int:
    """Print what a model takes on devices side by side; the exit status."""
    found: list[ModelEstimate] = []
    if plans and precision not in PLAN_PRECISIONS:
        raise WrongUsage(
            f"--plans is for {', '.join(PLAN_PRECISIONS)}: i8 asks for calibration data"
        )

    def work() -> None:
        from nacre.compile.target import target_of
        from nacre.llm.estimate.bounds import estimate_model
        from nacre.llm.estimate.probes import with_plans
        from nacre.llm.model.step import require_sizes

        sizes = _sizes(model)
        rows = context or min(LONGEST_CONTEXT, sizes.config.context)
        require_sizes(sizes.config, model, rows, 1)
        for device in dict.fromkeys(devices):
            known = target_of(device, include_roots).device
            group = None if group_size is None else int(group_size)
            made = estimate_model(
                sizes, known, precision, context=rows, ddr_bytes=ddr_size, clock_mhz=clock,
                group_size=group,
            )  # fmt: skip
            found.append(with_plans(made, sizes.config, known, rows, group) if plans else made)
        click.echo(_as_json(sizes, found) if output == "json" else _as_text(model, sizes, found))

    status = report_findings(work, output)
    return status or (0 if all(one.fits for one in found) else ERRORS_FOUND)


def _sizes(name: str) -> ModelSizes:
    from nacre.llm.checkpoint.configuration import CONFIGURATION, read_config_json
    from nacre.llm.estimate.sizes import ModelSizes
    from nacre.llm.model.config import config_of

    path = Path(name)
    if path.is_dir():
        path /= CONFIGURATION
    if path.suffix == ".json":
        reason = unreadable_reason(path)
        if reason is not None:
            raise WrongUsage(reason)
        return ModelSizes(*read_config_json(path))
    file = open_gguf(name)
    return ModelSizes(config_of(file), "output.weight" not in file.tensors)


def _as_text(name: str, sizes: ModelSizes, found: list[ModelEstimate]) -> str:
    c, first = sizes.config, found[0]
    head = (
        f"{safe(name)}: {c.family.name}, {sizes.parameters:,} parameters, {c.layers} layers of "
        f"{c.width}, {c.kv_heads} x {c.head_size} of keys, {first.precision}"
    )
    memory = [
        (
            one.device, _megabytes(one.weight_bytes), _megabytes(one.cache_bytes),
            _megabytes(one.activation_bytes), _megabytes(one.ddr_capacity),
            "yes" if one.fits else "no",
        )
        for one in found
    ]  # fmt: skip
    heads = ("device", "weights MB", "cache MB", "rest MB", "of DDR MB", "fits")
    parts = [head, table([heads, *memory], frozenset({1, 2, 3, 4}))]
    parts.append(_step_table("prompt", "ms to first token", found))
    parts.append(_step_table("after", "tokens/s", found))
    clocks = ", ".join(dict.fromkeys(f"{one.clock_mhz:,.0f} MHz" for one in found))
    from nacre.llm.estimate.probes import CHUNK

    is_planned = first.decode[0].plan_cycles is not None
    meant = f"plans, prompts in chunks of {CHUNK}" if is_planned else "bounds: a plan takes longer"
    parts.append(f"{meant}; clock {clocks}")
    return "\n\n".join(part for part in parts if part)


def _step_table(what: str, measure: str, found: list[ModelEstimate]) -> str:
    is_prompt = what == "prompt"
    rows = [("device", what, "cycles", measure, "limit", "DDR MB", "M MACs")]
    for one in found:
        for step in one.prefill if is_prompt else one.decode:
            rate = one.milliseconds(step) if is_prompt else one.tokens_per_second(step)
            rows.append(
                (
                    one.device, f"{step.context:,}", f"{step.expected_cycles:,}", f"{rate:,.1f}",
                    step.limit,
                    _megabytes(step.ddr_bytes), f"{step.macs / 1e6:,.0f}",
                )
            )  # fmt: skip
    return table(rows, frozenset({1, 2, 3, 5, 6})) if len(rows) > 1 else ""


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f}"


def _as_json(sizes: ModelSizes, found: list[ModelEstimate]) -> str:
    return json.dumps(
        {
            "architecture": sizes.config.family.name,
            "parameters": sizes.parameters,
            "devices": [_device_json(one) for one in found],
        },
        indent=2,
    )


def _device_json(one: ModelEstimate) -> dict[str, object]:
    return {
        "device": one.device,
        "precision": one.precision,
        "clock_mhz": one.clock_mhz,
        "fits": one.fits,
        "weight_bytes": one.weight_bytes,
        "cache_bytes": one.cache_bytes,
        "activation_bytes": one.activation_bytes,
        "ddr_bytes": one.ddr_capacity,
        "prefill": [_step_json(one, step) for step in one.prefill],
        "decode": [_step_json(one, step) for step in one.decode],
    }


def _step_json(one: ModelEstimate, step: StepBound) -> dict[str, object]:
    return {
        "tokens": step.tokens,
        "context": step.context,
        "cycles": step.expected_cycles,
        "bound_cycles": step.cycles,
        "limit": step.limit,
        "ddr_bytes": step.ddr_bytes,
        "macs": step.macs,
        "milliseconds": one.milliseconds(step),
        "tokens_per_second": one.tokens_per_second(step),
    }
