"""What the verbs of binding share: programs and bundles to bind, images from files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.diagnostics import Diagnostic, InputError, has_errors
from nacre.base.excerpt import safe
from nacre.base.source import read_stream
from nacre.cli.arrays import WrongUsage, unreadable_reason
from nacre.cli.inputs import STDIN, import_option, read_argument, without_repetition
from nacre.cli.options import ddr_size_option, include_root_option, options_of
from nacre.nem.checks.engine import CheckOptions
from nacre.nem.model.imports import Import
from nacre.nem.model.target import UnknownDeviceError
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES

if TYPE_CHECKING:
    from nacre.binding import TcbImage
    from nacre.compile.bundle.bundle import Bundle
    from nacre.nem.api.programs import LoadedProgram


@click.group()
def tcb() -> None:
    """Work with images of task control blocks, which `nacre bind` writes.

    Exit status: 0 no errors, 1 errors in the image or what it is compared with, 2 wrong usage.
    """


@dataclass(frozen=True)
class ProgramOptions:
    """A program or a bundle as options name it."""

    file: str
    device: str | None
    imports: tuple[Import, ...]
    include_roots: tuple[Path, ...]
    ddr_size: int


program_options = options_of(
    ProgramOptions,
    "program",
    click.argument("file", metavar="PLAN|BUNDLE"),
    click.option("--device", metavar="D", help="A built-in device or a file."),
    import_option,
    include_root_option,
    ddr_size_option,
)


@dataclass(frozen=True, eq=False)
class OpenProgram:
    """A program without errors; of a bundle also that."""

    loaded: LoadedProgram
    bundle: Bundle | None
    findings: Sequence[Diagnostic]  # warnings, where it is no bundle

    @property
    def bindable(self) -> LoadedProgram | Bundle:
        """What a binder takes."""
        return self.loaded if self.bundle is None else self.bundle

    def needed(self, folder: str) -> Sequence[Path]:
        """The files that it was read from, beside the one that was named."""
        return self.loaded.needed if self.bundle is None else list(Path(folder).iterdir())


def open_program(options: ProgramOptions) -> OpenProgram:
    """A program from a file or standard input, or a bundle from a folder.

    WrongUsage where there is none, InputError where it has errors.
    """
    if options.file != STDIN and os.path.isdir(options.file):
        return _open_bundle(options)
    from nacre.nem.api.programs import LoadedProgram

    source = read_argument(options.file)
    if isinstance(source, str):
        raise WrongUsage(source)
    if isinstance(source, Diagnostic):
        if _is_image(options.file):
            name = safe(options.file)
            raise WrongUsage(f"{name} is an image, which is bound already: see `nacre tcb`")
        raise InputError([source])
    check = CheckOptions(
        device=options.device,
        include_roots=options.include_roots,
        ddr_size_bytes=options.ddr_size,
        imports=options.imports,
    )
    loaded = LoadedProgram(source, check)
    try:
        findings = without_repetition(loaded.diagnostics)
    except UnknownDeviceError as error:
        raise click.UsageError(safe(str(error))) from None
    if has_errors(findings):
        raise InputError(findings)
    _ = loaded.facts  # a document without a program ends here
    return OpenProgram(loaded, None, findings)


def _is_image(name: str) -> bool:
    """Whether a file that is no text begins as an image does."""
    from nacre.tcb.binary.container import MAGIC

    if name == STDIN:
        return False
    with open(name, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _open_bundle(options: ProgramOptions) -> OpenProgram:
    from nacre.compile.bundle.bundle import Bundle

    if options.device is not None:
        raise click.UsageError("a bundle is for one device: compile the model for another")
    if options.imports or options.ddr_size != DEFAULT_DDR_BYTES:
        raise click.UsageError("--import and --ddr-size are for programs: a bundle says its own")
    bundle = Bundle.load(Path(options.file), cache=True)
    return OpenProgram(bundle.runnable_program, bundle, ())


def open_image(name: str) -> TcbImage:
    """The image of a file, or of standard input; WrongUsage where there is no file.

    InputError where it breaks a promise.
    """
    from nacre.binding import TcbImage
    from nacre.tcb.files import read_image
    from nacre.tcb.limits import MAX_FILE_BYTES

    if name == STDIN:
        if sys.stdin is None:  # closed by whoever started us
            raise WrongUsage("standard input is closed")
        return TcbImage(read_image(read_stream(sys.stdin.buffer, MAX_FILE_BYTES), "<stdin>"))
    reason = unreadable_reason(Path(name))
    if reason is not None:
        raise WrongUsage(reason)
    return TcbImage.load(name)


def plural(count: int, what: str) -> str:
    """`1 block`, `1,200 blocks`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
