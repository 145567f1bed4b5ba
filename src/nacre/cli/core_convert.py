"""`nacre core convert`: a module in another form.

What can be read and what can be written are two tables; a further form is a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from nacre.base.diagnostics import InputError, has_errors
from nacre.base.excerpt import quoted, safe
from nacre.base.files import write_whole
from nacre.cli.arrays import WrongUsage, require_writable
from nacre.cli.core_files import read_module, reported
from nacre.cli.inputs import STDIN

if TYPE_CHECKING:
    from nacre.core.module import Module

STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Target:
    """A form that modules are converted to; both functions raise InputError for a wrong module."""

    suffix: str
    text: Callable[[Module], str]
    write: Callable[[Module, Path], None]


# How a file is read, by the suffix of its name.
READERS: Mapping[str, Callable[[str], Module]] = MappingProxyType({".core": read_module})


def _verified(module: Module) -> Module:
    from nacre.core.verify import verify

    found = verify(module, "nacre-1")
    if has_errors(found):
        raise InputError(found)
    return module


def _core_text(module: Module) -> str:
    return str(_verified(module))


def _write_core(module: Module, path: Path) -> None:
    from nacre.core.storage import save

    save(_verified(module), path)


def _mlir_text(module: Module) -> str:
    from nacre.core.mlir.export import to_mlir

    return to_mlir(module)


def _write_mlir(module: Module, path: Path) -> None:
    write_whole(path, [_mlir_text(module)])


TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "core": Target(".core", _core_text, _write_core),
        "mlir": Target(".mlir", _mlir_text, _write_mlir),
    }
)


@click.command()
@click.argument("file")
@click.option(
    "-o",
    "out",
    metavar="FILE",
    help="Write here; the suffix says what to convert to. `-` or nothing: print.",
)
@click.option("--to", type=click.Choice(list(TARGETS)), help="What to convert to.")
def convert(file: str, out: str | None, to: str | None) -> int:
    """Convert a module, for example to MLIR.

    FILE is read by its suffix: `.core`, or `-` for such a text on standard input. Written are
    `.core`, with big constants in a file beside it, and `.mlir`.
    """
    reader, target = _reader(file), _target(out, to)
    if out is None or out == STDOUT:
        return reported(lambda: click.echo(target.text(reader(file)), nl=False))
    path = Path(out)
    require_writable(path)

    def work() -> None:
        module = reader(file)
        try:
            target.write(module, path)
        except OSError as error:
            raise WrongUsage(f"cannot write {safe(str(path))}: {error.strerror}") from None
        click.echo(f"wrote {safe(str(path))}: {len(module):,} operations")

    return reported(work)


def _reader(name: str) -> Callable[[str], Module]:
    suffix = ".core" if name == STDIN else Path(name).suffix.lower()
    if suffix not in READERS:
        expected = _listed(READERS)
        raise click.UsageError(f"cannot tell how to read {quoted(name)}, expected {expected}")
    return READERS[suffix]


def _target(out: str | None, to: str | None) -> Target:
    """What the option says, else the suffix; UsageError where they disagree or say nothing."""
    if out is None or out == STDOUT:
        if to is None:
            raise click.UsageError("nothing says what to convert to, expected --to or -o FILE")
        return TARGETS[to]
    suffix = Path(out).suffix.lower()
    meant = next((name for name, target in TARGETS.items() if target.suffix == suffix), None)
    chosen = to or meant
    if chosen is None:
        expected = _listed(target.suffix for target in TARGETS.values())
        raise click.UsageError(
            f"cannot tell what to write to {quoted(out)}, expected {expected}, or --to"
        )
    if meant not in (None, chosen):
        raise click.UsageError(f"--to says {chosen}, the name {quoted(out)} says {meant}")
    return TARGETS[chosen]


def _listed(suffixes: Iterable[str]) -> str:
    return "a name in " + " or ".join(f"`{suffix}`" for suffix in suffixes)
