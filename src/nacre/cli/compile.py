"""`nacre compile`: a model to a plan for a device."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.excerpt import safe
from nacre.base.grouping import merge_notes
from nacre.cli.arrays import report_write_errors
from nacre.cli.calibration import place_in_file
from nacre.cli.compile_options import CompileOptions, compile_options, read_device
from nacre.cli.core.files import (
    Constants,
    Shapes,
    constant_option,
    encodings_option,
    read_module,
    report_findings,
    shape_option,
)
from nacre.cli.options import include_root_option, out_option
from nacre.compile.options import STAGES, WEIGHT_BITS

if TYPE_CHECKING:
    from nacre.compile.bundle.bundle import Bundle
    from nacre.compile.bundle.manifest import CompressedWeights

_MOST = 5  # layers whose losses are named


class _Folder(click.Path):
    """A folder with a name: without one it would be the current folder."""

    def convert(
        self,
        value: str | PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | PathLike[str]:
        """The folder."""
        if not str(value).strip():
            self.fail("it is empty, expected the name of a folder", param, ctx)
        return super().convert(value, param, ctx)


@click.command("compile")
@click.argument("model", metavar="MODEL")
@click.option(
    "--device",
    "devices",
    required=True,
    multiple=True,
    metavar="D",
    help="A built-in device or a file.",
)
@include_root_option
@shape_option
@constant_option
@encodings_option
@compile_options
@click.option(
    "--print-after",
    multiple=True,
    type=click.Choice(STAGES),
    metavar="STAGE",
    help=f"Print what a stage made on standard error: {', '.join(STAGES)}.",
)
@out_option(
    "FOLDER",
    "Write the bundle here: a new folder, an empty one, or that of a bundle.",
    required=True,
    type=_Folder(path_type=Path, file_okay=False),
)
@click.option("--force", is_flag=True, help="Write into a folder that holds something else, too.")
@click.option(
    "--reference/--no-reference",
    default=True,
    help="Leave the model as it came out of the bundle, which is smaller then; `nacre validate` "
    "has the legalised model alone. Default: it is in the bundle.",
)
@click.option(
    "--bytecode", is_flag=True, help="The bundle has the program as `model.nemb`, not as text."
)
@click.option(
    "--cache/--no-cache",
    default=True,
    help="Take a plan that was made before of the same model, device, data and options by the "
    "same nacre, and keep a new one: in the folder that NACRE_CACHE names, else in the user's "
    "cache. Default: it is taken.",
)
def compile_(
    model: str,
    devices: tuple[str, ...],
    include_roots: tuple[Path, ...],
    shapes: Shapes,
    constants: Constants,
    encodings: Path | None,
    options: CompileOptions,
    print_after: tuple[str, ...],
    out: Path,
    force: bool,
    reference: bool,
    bytecode: bool,
    cache: bool,
) -> int:
    """Compile MODEL (.core, .onnx, .pt2 or .nac) to a plan in NEM for a device.

    The bundle is a folder with the program, the weights, a manifest and the model itself.
    """
    if len(devices) > 1:
        raise click.UsageError("a plan is for one device; `nacre estimate` compares several")
    if "quantise" in print_after and options.precision not in ("i8", *WEIGHT_BITS):
        reason = f"the precision is {options.precision}"
        raise click.UsageError(f"the stage quantise is of integers, and {reason}")

    def show_stage(stage: str, result: object) -> None:
        if stage in print_after:
            click.echo(f"# after {stage}\n{result}", err=True)

    beside = [str(file) for file in (options.calibrate, encodings) if file is not None]
    _require_inputs_kept(out, [model, *devices, *beside])

    def work() -> None:
        from nacre.compile.api import compile as compiled
        from nacre.compile.estimate.in_floats import compare_with_floats
        from nacre.compile.storage.names import require_own_folder

        if not force:
            require_own_folder(out)  # before a minute is spent

        arguments = options.arguments()
        module = read_module(model, shapes, constants, encodings)
        device = read_device(devices[0], include_roots)
        shown = show_stage if print_after else None
        with place_in_file(options.calibrate):
            bundle = compiled(module, device, on_stage=shown, cache=cache, **arguments)
        with report_write_errors(out):
            bundle.save(out, force=force, reference=reference, bytecode=bytecode, cache=cache)
        slower = compare_with_floats(bundle, module, device, options.ddr_size)
        notes = () if slower is None else (f"{slower.sentence}; try `--precision f16`",)
        click.echo(_summary(bundle, out, reference, notes))

    return report_findings(work)


def _require_inputs_kept(out: Path, read: Sequence[str]) -> None:
    """UsageError where a file that is read has the place of one that is written."""
    from nacre.compile.storage.names import MANIFEST, TEXTS

    written = {(out / name).resolve() for name in (MANIFEST, *TEXTS)}
    for name in read:
        if os.path.isfile(name) and Path(name).resolve() in written:
            raise click.UsageError(
                f"{safe(name)} is read, and would be overwritten: choose another folder with -o"
            )


def _summary(bundle: Bundle, out: Path, reference: bool, notes: Sequence[str]) -> str:
    from nacre.compile.storage.names import program_path

    manifest, program = bundle.manifest, program_path(out)
    count = len(manifest.layers)
    escaped = (line for layer in manifest.layers for line in layer.escaped)
    lines = [
        f"compiled for {manifest.device} in {bundle.precision_text}: "
        f"{count} layer{'s' if count != 1 else ''}, {manifest.macs_text}, "
        f"{len(bundle.weights):,} bytes of weights",
        *_compression(manifest.compression),
        *(f"note: {note}" for note in (*merge_notes(manifest.notes), *notes)),
        *(f"on the VPU: {line}" for line in merge_notes(escaped)),
        *_losses(bundle),
        f"wrote {safe(str(out))}: {program.name} ({program.stat().st_size:,} bytes), "
        f"manifest.json, {'model.core' if reference else 'interface.core'}, legal.core, and arrays "
        "beside them",
    ]
    return "\n".join(lines)


def _compression(found: CompressedWeights | None) -> list[str]:
    """What compression saves."""
    if found is None:
        return []
    what = f"compressed {found.blocks} of {found.of} blocks of weights"
    return [f"{what}, {found.saved_bytes:,} bytes fewer" if found.blocks else what]


def _losses(bundle: Bundle) -> list[str]:
    """What quantisation costs, the worst layers first, each by the worst of its values."""
    worst: dict[str, float] = {}
    for loss in sorted(bundle.manifest.losses, key=lambda loss: loss.sqnr):
        worst.setdefault(loss.layer, loss.sqnr)
    return [f"SQNR {sqnr:.1f} dB: {safe(name)}" for name, sqnr in islice(worst.items(), _MOST)]
