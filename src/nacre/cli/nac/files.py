"""What the verbs of `nacre nac` share: files that are read, tables that are printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from nacre.base.excerpt import safe
from nacre.base.stages import stage
from nacre.cli.arrays import WrongUsage, unreadable_reason
from nacre.cli.options import WholeNumber, bytes_option, unique_by_name

if TYPE_CHECKING:
    from nacre.core.module import TensorType
    from nacre.nac.run.model import NacModel
    from nacre.nac.tools.opening import OpenedFile


@click.group()
def nac() -> None:
    """Work with files of NAC, the binary format for networks.

    Exit status: 0 no errors, 1 errors in the file or its inputs, 2 wrong usage.
    """


SUFFIX = ".nac"
Pairs = tuple[tuple[str, str], ...]  # as options give them

weights_option = click.option(
    "--weights",
    type=click.Choice(["internal", "external"]),
    help="Where weights go: into the file, or beside it in a `.safetensors`.",
)

memory_limit_option = bytes_option(
    "--memory-limit",
    "Memory that weights and results may take together: weights are loaded when they are needed, "
    "and given back. Default: weights stay.",
)
_Command = TypeVar("_Command", bound=Callable[..., Any])


def limit_options(command: _Command) -> _Command:
    """The options of what a run may take."""
    default = "Default: by the sizes of the file and its inputs."
    steps = click.option("--max-work", type=WholeNumber(min=1), metavar="STEPS",
                         help=f"Steps that a run may take. {default}")  # fmt: skip
    size = bytes_option("--max-bytes", f"Memory that tensors may take at one time. {default}")
    return cast(_Command, size(steps(command)))


def require_readable(name: str) -> Path:
    """The path of a file that is there; WrongUsage where it is not."""
    reason = unreadable_reason(Path(name))
    if reason is not None:
        raise WrongUsage(reason)
    return Path(name)


def is_folder(path: Path) -> bool:
    """Whether a path leads to a folder; one that leads nowhere is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name that is too long, or holds what no name holds
        return False


def open_file(name: str) -> OpenedFile:
    """A file whose structure is sound; InputError has all that is wrong with it."""
    from nacre.nac.tools.opening import open_nac

    return open_nac(require_readable(name))


def load_model(
    name: str,
    max_bytes: int | None = None,
    max_work: int | None = None,
    keep_bytes: int | None = None,
    memory_limit: int | None = None,
) -> NacModel:
    """A file that can be run; InputError has all that is wrong with it."""
    from nacre.nac import load

    path = require_readable(name)
    with stage("reading"):
        return load(
            path,
            max_bytes=max_bytes,
            max_work=max_work,
            keep_bytes=keep_bytes,
            memory_limit=memory_limit,
        )


def types_of(pairs: Pairs) -> dict[str, TensorType]:
    """The types of `--type`; InputError for what is none."""
    from nacre.core.expressions import input_types

    return input_types(unique_by_name(pairs, "the type of input"))


def table(rows: Sequence[Sequence[str]], numbers: frozenset[int] = frozenset()) -> str:
    """Columns of equal width; those of numbers stand at the right."""
    texts = [[safe(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = []
    for row in texts:
        cells = zip(row, widths, range(len(widths)), strict=True)
        lines.append(
            "  ".join(c.rjust(w) if i in numbers else c.ljust(w) for c, w, i in cells).rstrip()
        )
    return "\n".join(lines)


def plural(count: int, what: str) -> str:
    """`1 tick`, `1,200 ticks`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def expand_paths(paths: Sequence[str]) -> list[Path]:
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


def program_names(files: Sequence[Path]) -> list[str]:
    """The names of files; the whole paths where two files have the same."""
    short = [path.name.removesuffix(SUFFIX) for path in files]
    return short if len(set(short)) == len(short) else [str(path) for path in files]
